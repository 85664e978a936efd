/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/describe.h"
#include "cli/rule_notes.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "core/config.h"
#include "core/fault_text.h"

#define FILE_MAX 1048576u

static struct config config;

/* False after a complaint. *ret is the caller's to free. */
static bool read_file(const char *path, char **ret, size_t *ret_length)
{
	FILE *file = fopen(path, "re");
	size_t length = 0;
	char *text;

	if (!file) {
		terminal_complain("check: expected a file of rules, got '%s': %s", path,
				strerror(errno));
		return false;
	}
	text = malloc(FILE_MAX + 1);
	if (!text)
		terminal_die_without_memory();
	length = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		terminal_complain("check: expected a file of rules, got '%s': %s", path,
				strerror(errno));
	else if (length > FILE_MAX)
		terminal_complain("check: expected a file of at most 1MiB, got '%s'; split it",
				path);
	if (ferror(file) || length > FILE_MAX) {
		fclose(file);
		free(text);
		return false;
	}
	fclose(file);
	*ret = text;
	*ret_length = length;
	return true;
}

static void print_rules(void)
{
	char text[DESCRIBE_SIZE];

	for (size_t i = 0; i < config.rule_count; i++) {
		const struct rule *rule = &config.rules[i];

		describe_settings(&rule->settings, text);
		printf("%s: ok %s%s%s\n", rule->name, rule->target.text, text[0] ? " " : "", text);
		rule_notes_print(rule);
	}
	for (size_t i = 0; i < config.fault_count; i++) {
		fault_describe(&config.faults[i], text, sizeof(text));
		printf("%s: ok fault %s\n", config.faults[i].name, text);
	}
}

static int report_problems(void)
{
	char log_problem[STATE_NOTE_SIZE];
	bool is_logging = state_log_is_writable(&config, log_problem);

	if (!is_logging)
		fprintf(stderr, "%s\n", log_problem);
	for (size_t i = 0; i < config.problem_count && i < CONFIG_MAX_PROBLEMS; i++)
		fprintf(stderr, "%s\n", config.problems[i].text);
	if (config.problem_count > CONFIG_MAX_PROBLEMS)
		terminal_complain("check: %zu more problems were not kept; mend these first",
				config.problem_count - CONFIG_MAX_PROBLEMS);
	return config.problem_count > 0 || !is_logging ? EXIT_PROBLEMS : 0;
}

/* `file`: the rules are of that; NULL: of the environment. */
static int report(const char *file)
{
	bool is_empty = config.rule_count + config.fault_count + config.problem_count == 0;

	print_rules();
	if (is_empty && file)
		printf("no rule in %s: write a line such as 'break NAME = HOST:PORT' or 'fault "
		       "NAME = HOST:PORT refuse'\n", file);
	else if (is_empty)
		puts("no rule: set SHUNT_BREAK_NAME='HOST:PORT', SHUNT_FAULT_NAME='HOST:PORT "
		     "refuse', or SHUNT_CONF to a file of rules");
	return report_problems();
}

static int check_environment(void)
{
	int status;

	config_load(&config, environ, NULL);
	if (!config.is_off)
		return report(NULL);
	/* Problems of the switch itself, then of the rules, as if it were not set. */
	terminal_complain("check: SHUNT_OFF is set, so none of this is in effect; unset it");
	status = report_problems();
	config_load(&config, state_environment(), NULL);
	return report(NULL) == 0 ? status : EXIT_PROBLEMS;
}

int cmd_check(int argc, char *argv[])
{
	struct command_options options;
	const char *value;
	char *text;
	size_t length;

	command_options_init(&options, NULL, 0, argc, argv);
	if (command_options_next(&options, &value) == COMMAND_OPTIONS_BAD ||
			!command_operands_fit(&options, 0, 1, "one file at most"))
		return EXIT_OWN_FAILURE;
	if (options.next == argc)
		return check_environment();
	if (!read_file(argv[options.next], &text, &length))
		return EXIT_OWN_FAILURE;
	config_load_text(&config, argv[options.next], text, length);
	free(text);
	return report(argv[options.next]);
}
