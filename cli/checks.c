/* SPDX-License-Identifier: MIT */
#include "cli/checks.h"

#include <string.h>
#include <unistd.h>

#include "cli/checks_program.h"
#include "cli/checks_setting.h"
#include "cli/library.h"

typedef void check_function(const struct subject *subject, struct report *report);

static void check_library(const struct subject *subject, struct report *report)
{
	if (subject->library_problem)
		report_line(report, VERDICT_NO, "%s", subject->library_problem);
	else
		report_line(report, VERDICT_OK, "the library is %s", subject->library);
}

static void check_steps(const struct subject *subject, struct report *report)
{
	const struct launch *launch = subject->launch;

	for (size_t i = 0; i < launch->step_count; i++) {
		const struct launch_step *step = &launch->steps[i];

		if (step->kind == STEP_SCRIPT)
			report_line(report, VERDICT_OK, "%s is a script: %s runs it", step->path,
					step->by);
		else if (step->kind == STEP_SHELL)
			report_line(report, VERDICT_OK, "%s is a script without #!: %s runs it",
					step->path, step->by);
		else if (step->by[0] != '\0')
			report_line(report, VERDICT_OK, "%s starts %s", step->path, step->by);
	}
	report_line(report, VERDICT_OK, "the program is %s", launch->path);
	if (launch->hidden_by[0] != '\0')
		report_line(report, VERDICT_WARN,
				"%s starts another program, which cannot be told from here; ask "
				"'shunt doctor' about that one%s", launch->hidden_by,
				launch->may_change_root
						? " (where it has a root of its own, the library "
						  "must be there under the same path)"
						: "");
	else if (launch->is_unreadable)
		report_line(report, VERDICT_WARN,
				"%s cannot be read by this user, so nothing is known of it; start "
				"it, and ask 'shunt doctor PID'", launch->path);
}

/* Of what is only a starter, or cannot be read, these say nothing. */
static void check_program(const struct subject *subject, struct report *report,
		void (*check)(const struct program *program, struct report *report))
{
	const struct launch *launch = subject->launch;
	struct program program = { .path = launch->path, .executable = &launch->executable,
		.environment = &launch->environment };

	if (launch->hidden_by[0] == '\0' && !launch->is_unreadable)
		check(&program, report);
}

static void check_program_machine(const struct subject *subject, struct report *report)
{
	check_program(subject, report, check_machine);
}

static void check_program_linkage(const struct subject *subject, struct report *report)
{
	check_program(subject, report, check_linkage);
}

static void check_program_libc(const struct subject *subject, struct report *report)
{
	check_program(subject, report, check_libc);
}

static void check_program_go(const struct subject *subject, struct report *report)
{
	check_program(subject, report, check_go);
}

static void check_program_sanitizer(const struct subject *subject, struct report *report)
{
	check_program(subject, report, check_sanitizer);
}

static void check_privileges(const struct subject *subject, struct report *report)
{
	if (subject->launch->is_told || subject->launch->privileges[0] == '\0' ||
			strcmp(subject->launch->privileges, subject->launch->lost_by) == 0)
		return;
	report_line(report, VERDICT_NO,
			"%s: the loader ignores LD_PRELOAD there; run a copy without these rights "
			"as the user that has them, or give it capabilities by "
			"AmbientCapabilities= or 'setpriv --ambient-caps'",
			subject->launch->privileges);
}

static bool has_rules(char *const entries[])
{
	for (size_t i = 0; entries && entries[i]; i++) {
		if (strncmp(entries[i], "SHUNT_BREAK", strlen("SHUNT_BREAK")) == 0 ||
				strncmp(entries[i], "SHUNT_FAULT", strlen("SHUNT_FAULT")) == 0 ||
				strncmp(entries[i], "SHUNT_CONF=", strlen("SHUNT_CONF=")) == 0)
			return true;
	}
	return false;
}

static void check_loss(const struct subject *subject, struct report *report)
{
	const struct launch *launch = subject->launch;

	if (launch->lost_by[0] != '\0')
		report_line(report, VERDICT_NO,
				"%s: what it starts runs without the library; put 'shunt run --' "
				"behind it, before the program", launch->lost_by);
	else if (launch->may_lose[0] != '\0')
		report_line(report, VERDICT_WARN,
				"%s drops LD_PRELOAD and the rules, unless it is configured to "
				"keep them; put 'shunt run --' behind it, before the program",
				launch->may_lose);
	else if (has_rules(environ) && !launch->is_told && !has_rules(launch->environment.entries))
		report_line(report, VERDICT_NO,
				"no rule is left in the environment of %s, so nothing would be "
				"guarded; put 'shunt run --' directly before it", launch->path);
}

static void check_preloads(const struct subject *subject, struct report *report)
{
	check_other_preloads(subject->other_preloads, subject->library, report);
}

/* Of an environment that does not reach the program, ours is worth knowing. */
static void check_settings(const struct subject *subject, struct report *report)
{
	const struct launch *launch = subject->launch;
	struct environment ours;

	if (launch->lost_by[0] == '\0' && !launch->is_told) {
		check_environment(&launch->environment,
				arguments_base_name(launch->arguments.words[0]), report);
		return;
	}
	environment_copy(&ours, environ);
	check_environment(&ours, NULL, report);
	environment_finish(&ours);
}

enum use {
	USE_DOCTOR, /* by `doctor` alone */
	USE_STOPS,  /* NO stops `run`, what is less is not said there */
	USE_WARNS,  /* and what is less is said */
};

static const struct check {
	check_function *function;
	enum use use;
} checks[] = {
	{ check_library, USE_DOCTOR }, /* `run` has found it before */
	{ check_steps, USE_DOCTOR },
	{ check_program_machine, USE_STOPS },
	{ check_program_linkage, USE_STOPS },
	{ check_program_libc, USE_STOPS },
	{ check_program_go, USE_STOPS },
	{ check_program_sanitizer, USE_STOPS },
	{ check_privileges, USE_STOPS },
	{ check_loss, USE_WARNS },
	{ check_preloads, USE_DOCTOR },
	{ check_settings, USE_DOCTOR },
};

#define CHECK_COUNT (sizeof(checks) / sizeof(checks[0]))

void checks_make(const struct subject *subject, struct report *report)
{
	for (size_t i = 0; i < CHECK_COUNT; i++)
		checks[i].function(subject, report);
}

void checks_make_for_run(const struct subject *subject, struct report *report)
{
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		if (checks[i].use == USE_DOCTOR)
			continue;
		report->only_no = checks[i].use == USE_STOPS;
		checks[i].function(subject, report);
	}
}
