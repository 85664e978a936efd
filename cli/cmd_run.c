/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/checks.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/environment.h"
#include "cli/fault_run.h"
#include "cli/filter.h"
#include "cli/given_rules.h"
#include "cli/launch.h"
#include "cli/library.h"
#include "cli/rules.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/config.h"
#include "core/fault_text.h"

enum {
	RUN_BREAK, RUN_SEED, RUN_OBSERVE, RUN_BACKTRACE, RUN_VERBOSE,
	RUN_FAULT, RUN_REPORT, RUN_REPLAY, RUN_REQUIRE_HITS,
	RUN_OPTION_COUNT
};

static const struct command_option run_options[] = {
	[RUN_BREAK] = { "--break", .has_value = true, .may_repeat = true },
	[RUN_SEED] = { "--seed", .has_value = true },
	[RUN_OBSERVE] = { "--observe", .has_value = false },
	[RUN_BACKTRACE] = { "--backtrace", .has_value = false },
	[RUN_VERBOSE] = { "--verbose", .has_value = false },
	[RUN_FAULT] = { "--fault", .has_value = true, .may_repeat = true },
	[RUN_REPORT] = { "--report", .has_value = true },
	[RUN_REPLAY] = { "--replay", .has_value = true },
	[RUN_REQUIRE_HITS] = { "--require-hits", .has_value = false },
};

static struct config config;

struct run {
	struct given_rules given;
	struct fault_run faults;
	bool is_verbose;
	char **command;
};

/* "" would be no seed at all, which the library takes for one that is not set. */
static bool take_seed(const char *value)
{
	if (!value[0]) {
		terminal_complain("run: --seed: expected a whole number, got ''");
		return false;
	}
	environment_set_own("SHUNT_SEED", value);
	return true;
}

/* `-` stands for a stream elsewhere; what is written here is opened anew for each line. */
static bool take_file(const char *option, const char *value, const char **ret)
{
	*ret = value;
	if (strcmp(value, "-") != 0)
		return true;
	terminal_complain("run: %s: expected a file, got '-'; one of that name is ./-", option);
	return false;
}

static bool run_take_option(struct run *run, int option, const char *value)
{
	switch (option) {
	case RUN_BREAK:
		return given_rules_add(&run->given, GIVEN_BREAK, value);
	case RUN_FAULT:
		return given_rules_add(&run->given, GIVEN_FAULT, value);
	case RUN_REPORT:
		return take_file("--report", value, &run->faults.report);
	case RUN_REPLAY:
		return take_file("--replay", value, &run->faults.replay);
	case RUN_REQUIRE_HITS:
		run->faults.requires_hits = true;
		return true;
	case RUN_SEED:
		return take_seed(value);
	case RUN_OBSERVE:
		environment_set_own("SHUNT_MODE", "observe");
		return true;
	case RUN_BACKTRACE:
		environment_set_own("SHUNT_BACKTRACE", "1");
		return true;
	default:
		run->is_verbose = run->faults.is_verbose = true;
		return true;
	}
}

static bool run_parse(struct run *run, int argc, char *argv[])
{
	struct command_options options;
	const char *value = NULL;
	int option;

	command_options_init(&options, run_options, RUN_OPTION_COUNT, argc, argv);
	while ((option = command_options_next(&options, &value)) >= 0) {
		if (!run_take_option(run, option, value))
			return false;
	}
	if (option == COMMAND_OPTIONS_BAD ||
			!command_operands_fit(&options, 1, argc, "a command to run"))
		return false;
	run->command = &argv[options.next];
	return true;
}

/* Without a seed each process would draw in its own way. */
static void run_set_seed(void)
{
	char text[24];

	if (config.has_seed || config.fault_count == 0)
		return;
	config.seed = (clock_now_ns() ^ (uint64_t)getpid() << 20) & UINT32_MAX;
	config.has_seed = true;
	snprintf(text, sizeof(text), "%" PRIu64, config.seed);
	environment_set_own("SHUNT_SEED", text);
}

static bool run_may_start(const struct run *run)
{
	char log_problem[STATE_NOTE_SIZE];

	if (config.problem_count > 0) {
		given_rules_complain(&run->given, &config);
		return false;
	}
	if (!state_log_is_writable(&config, log_problem)) {
		terminal_complain("run: %s", log_problem);
		return false;
	}
	if (rules_do_something(&config))
		return true;
	terminal_complain("run: expected a rule, got %s, so nothing would be guarded or injected; "
			  "give one, as in: shunt run --break 'pay.internal:443 errors=50%%' -- %s",
			config.rule_count + config.fault_count > 0 ? "exclusions (^) alone"
								   : "none",
			run->command[0]);
	return false;
}

static void tell_segment(void)
{
	const struct state *state = state_open();

	if (state->segment || state->is_missing)
		terminal_complain("run: circuits are shared in %s", state->path);
	else
		terminal_complain("run: %s", state->reason);
}

static void run_tell(const struct run *run, const char *library)
{
	char settings[DESCRIBE_SIZE], filter[FILTER_TEXT_SIZE];

	terminal_complain("run: preloading %s", library);
	tell_segment();
	if (filter_describe(&config, filter))
		terminal_complain("run: %s", filter);
	for (size_t i = 0; i < config.rule_count; i++) {
		const struct rule *rule = &config.rules[i];

		describe_settings(&rule->settings, settings);
		terminal_complain("run: rule %s: %s%s%s", rule->name, rule->target.text,
				settings[0] ? " " : "", settings);
	}
	if (config.fault_count > 0 && !run->faults.replay)
		terminal_complain("run: the same faults again: --seed %" PRIu64, config.seed);
	for (size_t i = 0; i < config.fault_count; i++) {
		fault_describe(&config.faults[i], settings, sizeof(settings));
		terminal_complain("run: fault %s: %s", config.faults[i].name, settings);
	}
}

/* Returns only to say why it could not start, with `problem` where that is known already. In place:
 * signals, exit status and job control are the command's own. */
static int run_execute(char **command, const char *problem)
{
	execvp(command[0], command);
	if (problem && problem[0] != '\0') {
		int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;

		terminal_complain("run: %s", problem);
		return status;
	}
	if (errno == ENOENT) {
		terminal_complain("run: expected a command on PATH or a path to one (and, of a "
				"script, its interpreter), got '%s': not found", command[0]);
		return EXIT_NOT_FOUND;
	}
	terminal_complain("run: expected a command that can be executed, got '%s': %s", command[0],
			strerror(errno));
	return EXIT_NOT_EXECUTABLE;
}

struct refusal {
	const struct launch *launch;
	bool is_said;
};

/* One reason is enough. */
static void take_line(struct report *report, enum verdict verdict, const char *line)
{
	struct refusal *refusal = report->taker;

	if (verdict == VERDICT_WARN)
		terminal_complain("run: %s", line);
	if (verdict != VERDICT_NO || refusal->is_said)
		return;
	refusal->is_said = true;
	terminal_complain("run: expected a command that the library can work in, got '%s': %s",
			refusal->launch->arguments.words[0], line);
}

/* False, after a complaint, where the command would run as if there were no library. What cannot be
 * executed is for execvp() to find. */
static bool run_would_work(const struct launch *launch, const char *library)
{
	struct refusal refusal = { .launch = launch };
	struct report report = { .take = take_line, .taker = &refusal };
	struct subject subject = { .launch = launch, .library = library };

	if (launch->answer == LAUNCH_FOUND)
		checks_make_for_run(&subject, &report);
	return !refusal.is_said;
}

struct execution {
	char **command;
	const char *problem;
};

static int execute(void *argument)
{
	const struct execution *execution = argument;

	return run_execute(execution->command, execution->problem);
}

/* As a child, where there is something to tell at its end. */
static int run_and_tell(struct run *run, const char *problem)
{
	struct execution execution = { .command = run->command, .problem = problem };
	struct child_end end;

	if (!child_run(execute, &execution, &end)) {
		terminal_complain("run: expected room for one more process, got none: %s",
				strerror(errno));
		return EXIT_OWN_FAILURE;
	}
	if (end.failure)
		return end.failure;
	return fault_run_end(&run->faults) ? child_exit_status(end.wait_status)
					   : EXIT_OWN_FAILURE;
}

static int run_with_library(struct run *run, const char *library)
{
	static struct launch launch;

	library_preload(library);
	launch_follow(&launch, run->command, environ, library);
	if (!run_would_work(&launch, library))
		return EXIT_OWN_FAILURE;
	run_set_seed();
	if (!fault_run_begin(&run->faults, &config))
		return EXIT_OWN_FAILURE;
	if (run->is_verbose)
		run_tell(run, library);
	if (fault_run_stays(&run->faults, &config))
		return run_and_tell(run, launch.problem);
	return run_execute(run->command, launch.problem);
}

/* The kill switch must not stop a service from starting; nor must a test that asks for faults take
 * it for a pass. */
static int run_switched_off(const struct run *run)
{
	if (run->faults.requires_hits) {
		terminal_complain("run: --require-hits: expected a fault to be injected, got "
				  "SHUNT_OFF, with which none is; unset it");
		return EXIT_OWN_FAILURE;
	}
	for (size_t i = 0; i < config.problem_count && i < CONFIG_MAX_PROBLEMS; i++)
		terminal_complain("run: %s", config.problems[i].text);
	terminal_complain("run: SHUNT_OFF is set: nothing is guarded, nothing injected");
	return run_execute(run->command, NULL);
}

int cmd_run(int argc, char *argv[])
{
	static struct run run;
	char library[PATH_MAX], problem[LIBRARY_PROBLEM_SIZE];

	if (!run_parse(&run, argc, argv))
		return EXIT_OWN_FAILURE;
	given_rules_set(&run.given, &config);
	if (config.is_off)
		return run_switched_off(&run);
	if (!run_may_start(&run))
		return EXIT_OWN_FAILURE;
	if (!library_find(library, problem)) {
		terminal_complain("run: %s", problem);
		return EXIT_OWN_FAILURE;
	}
	return run_with_library(&run, library);
}
