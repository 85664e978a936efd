/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/terminal.h"
#include "core/fault_terms.h"
#include "core/setting_table.h"
#include "core/settings.h"
#include "core/text.h"

struct command {
	const char *name;
	int (*function)(int argc, char *argv[]);
	const char *arguments;
	const char *description;
};

static int cmd_help(int argc, char *argv[]);

static const struct command commands[] = {
	{ "run", cmd_run,
		"[--break RULE] [--fault RULE] [--seed N] [--report FILE] [--replay FILE] "
		"[--require-hits] [--observe] [--backtrace] [--verbose] -- COMMAND...",
		"run a program with circuit breakers, and faults, under it" },
	{ "status", cmd_status, "[--json] [--watch] [--all]",
		"show the circuits that processes of this user share" },
	{ "events", cmd_events, "[--follow] [--json]",
		"show when circuits opened and closed" },
	{ "trip", cmd_trip, "NAME[@ADDRESS|@lookup]",
		"open the circuits of a rule, as if they had failed" },
	{ "reset", cmd_reset, "NAME[@ADDRESS|@lookup]",
		"close the circuits of a rule and forget what was counted" },
	{ "set", cmd_set, "NAME[@ADDRESS] concurrency=N|off|rule",
		"change how many calls to a rule's targets may be in flight" },
	{ "force", cmd_force, "NAME[@ADDRESS|@lookup] open|closed|none",
		"hold the circuits of a rule open or closed, or let go" },
	{ "check", cmd_check, "[FILE]",
		"read the rules of the environment, or of a file, and say what is wrong" },
	{ "fault", cmd_fault,
		"add NAME RULE [--for DURATION] | list [--json] [--all] | clear [NAME]",
		"inject a fault into running programs, for a while; show faults; end them" },
	{ "explain", cmd_explain, "[--json] HOST:PORT | dns:NAME",
		"say which rules apply to a host, in which order, and why" },
	{ "doctor", cmd_doctor, "COMMAND [ARGUMENT...] | PID",
		"say whether the library can work in a command, or works in a process" },
	{ "help", cmd_help, "[COMMAND|settings|faults]",
		"show this, one command, what a rule may set, or which faults there are" },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const char *const missing_commands[] = {
	"top", "env", "metrics", "serve",
};

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static bool command_is_missing(const char *name)
{
	for (size_t i = 0; i < sizeof(missing_commands) / sizeof(missing_commands[0]); i++) {
		if (strcmp(missing_commands[i], name) == 0)
			return true;
	}
	return false;
}

static void print_usage(FILE *file)
{
	fputs("usage: shunt COMMAND [ARGUMENT...]\n\n", file);
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		const struct command *command = &commands[i];

		fprintf(file, "  shunt %s %s\n        %s\n", command->name, command->arguments,
				command->description);
	}
	fputs("\nA breaker rule is 'HOST[:PORT] SETTING=VALUE ...', a fault rule 'HOST[:PORT] "
			"FAULT ...';\nsee 'shunt help settings', 'shunt help faults' and "
			"shunt(7).\n",
			file);
}

static void print_settings(void)
{
	size_t count;
	const struct setting *settings = settings_table(&count);

	for (size_t i = 0; i < count; i++)
		printf("%-20s %-14s %s\n", settings[i].name, settings[i].default_text,
				settings[i].meaning);
}

static void print_faults(void)
{
	static const char *const groups[] = {
		[FAULT_TERM_KIND] = "faults",
		[FAULT_TERM_LOOKUP] = "on dns:NAME targets",
		[FAULT_TERM_WHEN] = "when",
		[FAULT_TERM_SCOPE] = "scope",
	};
	const struct fault_term *term;

	for (size_t i = 0; (term = fault_term_at(i)); i++) {
		if (i == 0 || fault_term_at(i - 1)->group != term->group)
			printf("%s%s\n", i ? "\n" : "", groups[term->group]);
		printf("  %-36s  %s\n", term->form, term->meaning);
	}
}

static int complain_unknown(const char *name)
{
	const char *names[COMMAND_COUNT];
	const char *nearest;

	if (command_is_missing(name)) {
		terminal_complain("%s: not in this version (" SHUNT_VERSION
				  "); 'shunt help' lists what is", name);
		return EXIT_OWN_FAILURE;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i].name;
	nearest = text_nearest(name, names, COMMAND_COUNT);
	if (nearest)
		terminal_complain("expected a command such as %s, got '%s'", nearest, name);
	else
		terminal_complain("expected a command of 'shunt help', got '%s'", name);
	return EXIT_OWN_FAILURE;
}

static int print_command(const struct command *command)
{
	printf("usage: shunt %s %s\n%s; see shunt(1)\n", command->name, command->arguments,
			command->description);
	return 0;
}

static int cmd_help(int argc, char *argv[])
{
	const struct command *command;

	if (argc < 2) {
		print_usage(stdout);
		return 0;
	}
	if (strcmp(argv[1], "settings") == 0) {
		print_settings();
		return 0;
	}
	if (strcmp(argv[1], "faults") == 0) {
		print_faults();
		return 0;
	}
	command = command_find(argv[1]);
	return command ? print_command(command) : complain_unknown(argv[1]);
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int dispatch(int argc, char *argv[])
{
	const struct command *command;

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_OWN_FAILURE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("shunt " SHUNT_VERSION);
		return 0;
	}
	if (is_help(argv[1]))
		return cmd_help(1, argv);
	command = command_find(argv[1]);
	if (!command)
		return complain_unknown(argv[1]);
	if (argc > 2 && is_help(argv[2]))
		return print_command(command);
	if (argc > 3 && strcmp(command->name, "fault") == 0 && is_help(argv[3]))
		return print_command(command);
	return command->function(argc - 1, argv + 1);
}

int main(int argc, char *argv[])
{
	int status = dispatch(argc, argv);

	return terminal_flush() || status != 0 ? status : EXIT_OWN_FAILURE;
}
