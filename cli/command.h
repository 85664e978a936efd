/* SPDX-License-Identifier: MIT */
/* What all commands share: how they are called, how they read their options. */
#ifndef SHUNT_CLI_COMMAND_H
#define SHUNT_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* argv[0] is the command's name. Returns the exit status. */
int cmd_run(int argc, char *argv[]);
int cmd_status(int argc, char *argv[]);
int cmd_events(int argc, char *argv[]);
int cmd_trip(int argc, char *argv[]);
int cmd_reset(int argc, char *argv[]);
int cmd_force(int argc, char *argv[]);
int cmd_set(int argc, char *argv[]);
int cmd_check(int argc, char *argv[]);
int cmd_fault(int argc, char *argv[]);
int cmd_explain(int argc, char *argv[]);
int cmd_doctor(int argc, char *argv[]);

struct command_option {
	const char *name; /* with its dashes */
	bool has_value;
	bool may_repeat; /* of those with a value: each adds to those before it */
};

/* Reads options one by one; stops at the first word that is none, or after "--". */
struct command_options {
	const char *command; /* in complaints; argv[0], unless it is set to another */
	const struct command_option *table;
	size_t count;
	int argc;
	char **argv;
	int next; /* when it stopped: index of the first operand */
	unsigned int seen; /* bit = row: it was given a value */
};

#define COMMAND_OPTIONS_END (-1)
#define COMMAND_OPTIONS_BAD (-2)

void command_options_init(struct command_options *options, const struct command_option *table,
		size_t count, int argc, char *argv[]);

/* The row of the next option, with *ret_value set where it has a value; _END; or _BAD after a
 * complaint. */
int command_options_next(struct command_options *options, const char **ret_value);

/* Complains and is false unless there are from `least` to `most` operands. `expected` says what
 * they are. */
bool command_operands_fit(const struct command_options *options, int least, int most,
		const char *expected);

#endif
