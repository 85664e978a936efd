/* SPDX-License-Identifier: MIT */
#include "cli/checks_setting.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/filter.h"
#include "cli/library.h"
#include "cli/rules.h"
#include "cli/state.h"
#include "cli/symbols.h"

static struct config config;

/* Functions that whoever stands in front of libc's network stands in for. */
static const char *const hooked[] = { "connect", "send", "recv", "getaddrinfo" };

#define HOOKED_COUNT (sizeof(hooked) / sizeof(hooked[0]))

static void check_file(const char *path, int fd, struct report *report)
{
	uint32_t defined, wanted;

	if (!symbols_find(fd, hooked, HOOKED_COUNT, &defined, &wanted))
		report_line(report, VERDICT_WARN,
				"LD_PRELOAD names %s, which is no library for this machine: the "
				"loader complains of it, and goes on; take it out", path);
	else if (defined)
		report_line(report, VERDICT_WARN,
				"%s is preloaded too and stands in for connect and the like: shunt "
				"comes before it, and judges what it makes of each call", path);
	else
		report_line(report, VERDICT_OK, "%s is preloaded too", path);
}

static void check_preload(const char *path, const char *library, struct report *report)
{
	int fd;

	if (library_is(path, library)) {
		report_line(report, VERDICT_OK, "LD_PRELOAD has the library already");
		return;
	}
	if (strcmp(arguments_base_name(path), LIBRARY_NAME) == 0) {
		report_line(report, VERDICT_WARN,
				"LD_PRELOAD names another copy of the library, %s: calls would be "
				"counted twice; take it out", path);
		return;
	}
	if (!strchr(path, '/')) {
		report_line(report, VERDICT_OK, "%s is preloaded too, if the loader finds it",
				path);
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		report_line(report, VERDICT_WARN,
				"LD_PRELOAD names %s: %s; the loader complains of it, and goes on; "
				"take it out", path, strerror(errno));
		return;
	}
	check_file(path, fd, report);
	close(fd);
}

void check_other_preloads(const char *preload, const char *library, struct report *report)
{
	char path[PATH_MAX];

	while (preload && library_next(&preload, path))
		check_preload(path, library, report);
}

void check_earlier_preloads(const char *preload, struct report *report)
{
	uint32_t defined = 0, wanted;
	char path[PATH_MAX];

	while (preload && library_next(&preload, path) &&
			strcmp(arguments_base_name(path), LIBRARY_NAME) != 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0 && symbols_find(fd, hooked, HOOKED_COUNT, &defined, &wanted) && defined)
			report_line(report, VERDICT_WARN,
					"%s comes before the library and stands in for connect and "
					"the like: what it does not pass on is not seen; let shunt "
					"come first, as 'shunt run' does", path);
		if (fd >= 0)
			close(fd);
	}
}

static void check_rules(enum verdict where_none, struct report *report)
{
	size_t rule_count = config.rule_count + config.fault_count;
	char log_problem[STATE_NOTE_SIZE];

	for (size_t i = 0; i < config.problem_count && i < CONFIG_MAX_PROBLEMS; i++)
		report_line(report, VERDICT_NO, "%s", config.problems[i].text);
	if (config.problem_count > CONFIG_MAX_PROBLEMS)
		report_line(report, VERDICT_NO,
				"%zu more problems with the rules were not kept; mend these first",
				config.problem_count - CONFIG_MAX_PROBLEMS);
	if (!state_log_is_writable(&config, log_problem))
		report_line(report, VERDICT_NO, "%s", log_problem);
	if (rule_count > 0)
		report_line(report, VERDICT_OK, "%zu rule%s: 'shunt check' shows %s",
				rule_count, rule_count == 1 ? "" : "s",
				rule_count == 1 ? "it" : "them");
	if (config.problem_count == 0 && !rules_do_something(&config))
		report_line(report, where_none,
				"no rule in the environment%s, so nothing would be guarded; set "
				"SHUNT_BREAK_NAME='HOST:PORT', or use 'shunt run --break'",
				rule_count > 0 ? " but exclusions" : "");
	if (config.observe)
		report_line(report, VERDICT_WARN,
				"SHUNT_MODE=observe: calls are judged and counted, none is "
				"refused, nothing is injected; unset it to do so");
}

static void check_segment(const struct environment *environment, struct report *report)
{
	const struct state *state = state_open_for(environment->entries);

	if (state->segment)
		report_line(report, VERDICT_OK, "circuits are shared in %s", state->path);
	else if (state->is_missing)
		report_line(report, VERDICT_OK,
				"circuits will be shared in %s, which the first program makes",
				state->path);
	else
		report_line(report, VERDICT_WARN, "%s", state->reason);
}

static void check_filter(struct report *report)
{
	char text[FILTER_TEXT_SIZE];

	if (filter_describe(&config, text))
		report_line(report, VERDICT_WARN, "%s", text);
}

/* True where the library looks no further. */
static bool is_switched_off(const struct environment *environment, const char *name,
		struct report *report)
{
	const char *only = environment_get(environment, "SHUNT_PROC");
	const char *skipped = environment_get(environment, "SHUNT_SKIP");

	config_load(&config, environment->entries, NULL);
	if (config.is_off) {
		report_line(report, VERDICT_NO,
				"SHUNT_OFF is set, so the library does nothing; unset it");
		return true;
	}
	if (name)
		config_load(&config, environment->entries,
				&(struct config_process){ name, geteuid() });
	if (!config.is_off)
		return false;
	report_line(report, VERDICT_NO,
			"%s%s%s%s%s keeps the library out of programs that are called '%s' (of a "
			"script, that is its interpreter)",
			only ? "SHUNT_PROC=" : "", only ? only : "", only && skipped ? ", " : "",
			skipped ? "SHUNT_SKIP=" : "", skipped ? skipped : "", name);
	/* The rest is worth knowing all the same. */
	config_load(&config, environment->entries, NULL);
	return false;
}

void check_environment(const struct environment *environment, const char *name,
		struct report *report)
{
	if (is_switched_off(environment, name, report))
		return;
	check_rules(name ? VERDICT_NO : VERDICT_WARN, report);
	check_segment(environment, report);
	check_filter(report);
}
