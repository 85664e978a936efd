/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/checks.h"
#include "cli/checks_process.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/library.h"
#include "cli/patient.h"
#include "cli/terminal.h"

static bool is_number(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

static int exit_status(const struct report *report)
{
	return report->worst == VERDICT_NO ? EXIT_PROBLEMS : 0;
}

static int examine_launch(const char *word, const struct launch *launch,
		const struct subject *subject)
{
	struct report report = { .worst = VERDICT_OK };

	if (launch->answer == LAUNCH_NOT_FOUND && is_number(word)) {
		terminal_complain("doctor: expected a process or a command, got '%s': there is "
				"none", word);
		return EXIT_NOT_FOUND;
	}
	if (launch->answer != LAUNCH_FOUND) {
		terminal_complain("doctor: %s", launch->problem);
		return launch->answer == LAUNCH_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	checks_make(subject, &report);
	return exit_status(&report);
}

/* With the environment that `run` would make of ours. */
static int examine_command(char *words[])
{
	static struct launch launch;
	char library[PATH_MAX], problem[LIBRARY_PROBLEM_SIZE];
	const char *others = getenv("LD_PRELOAD");
	bool is_found = library_find(library, problem);
	struct subject subject = { .launch = &launch, .library = library,
		.library_problem = is_found ? NULL : problem };
	int status;

	if (others) {
		others = strdup(others);
		if (!others)
			terminal_die_without_memory();
	}
	subject.other_preloads = others;
	if (is_found)
		library_preload(library);
	launch_follow(&launch, words, environ, library);
	status = examine_launch(words[0], &launch, &subject);
	launch_finish(&launch);
	free((char *)others);
	return status;
}

static int examine_process(const char *number)
{
	static struct patient patient;
	struct report report = { .worst = VERDICT_OK };

	if (!patient_open(number, &patient))
		return EXIT_OWN_FAILURE;
	checks_make_of_process(&patient, &report);
	patient_close(&patient);
	return exit_status(&report);
}

int cmd_doctor(int argc, char *argv[])
{
	struct command_options options;
	const char *value, *word;

	command_options_init(&options, NULL, 0, argc, argv);
	if (command_options_next(&options, &value) == COMMAND_OPTIONS_BAD ||
			!command_operands_fit(&options, 1, argc, "a command or a process"))
		return EXIT_OWN_FAILURE;
	word = argv[options.next];
	if (is_number(word) && patient_exists(word))
		return command_operands_fit(&options, 1, 1, "one process")
				? examine_process(word)
				: EXIT_OWN_FAILURE;
	return examine_command(&argv[options.next]);
}
