/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include <string.h>

#include "cli/terminal.h"
#include "core/text.h"

#define OPTIONS_MAX 16

void command_options_init(struct command_options *options, const struct command_option *table,
		size_t count, int argc, char *argv[])
{
	*options = (struct command_options){
		.command = argv[0], .table = table, .count = count, .argc = argc, .argv = argv,
		.next = 1
	};
}

static void complain_unknown(const struct command_options *options, const char *word)
{
	const char *names[OPTIONS_MAX];
	const char *command = options->command;
	const char *nearest;
	size_t count = 0;

	for (size_t i = 0; i < options->count && i < OPTIONS_MAX; i++)
		names[count++] = options->table[i].name;
	nearest = text_nearest(word, names, count);
	if (nearest)
		terminal_complain("%s: expected an option such as %s, got '%s'", command, nearest,
				word);
	else
		terminal_complain("%s: expected an option of 'shunt help %s', got '%s'", command,
				command, word);
}

/* Is `word` the option, alone or as --name=value? Then *ret_rest is what follows the name. */
static bool option_is(const struct command_option *option, const char *word, const char **ret_rest)
{
	size_t length = strlen(option->name);

	if (strncmp(word, option->name, length) != 0)
		return false;
	if (word[length] != '\0' && word[length] != '=')
		return false;
	*ret_rest = word + length;
	return true;
}

static bool read_value(struct command_options *options, const struct command_option *option,
		const char *rest, const char **ret_value)
{
	const char *command = options->command;

	if (!option->has_value) {
		if (*rest == '\0')
			return true;
		terminal_complain("%s: expected %s without a value, got '%s'", command,
				option->name, options->argv[options->next - 1]);
		return false;
	}
	if (*rest == '=') {
		*ret_value = rest + 1;
		return true;
	}
	if (options->next >= options->argc) {
		terminal_complain("%s: expected a value after %s, got nothing; see 'shunt help %s'",
				command, option->name, command);
		return false;
	}
	*ret_value = options->argv[options->next++];
	/* What was forgotten would be taken from the next option, or from the command. */
	if (strncmp(*ret_value, "--", 2) != 0)
		return true;
	terminal_complain("%s: expected a value after %s, got '%s'; one that begins so is written "
			  "%s=%s", command, option->name, *ret_value, option->name, *ret_value);
	return false;
}

static bool take_once(struct command_options *options, size_t row)
{
	const struct command_option *option = &options->table[row];
	bool is_seen = options->seen >> row & 1;

	options->seen |= 1u << row;
	if (!is_seen || !option->has_value || option->may_repeat)
		return true;
	terminal_complain("%s: expected %s once, got it again", options->command, option->name);
	return false;
}

static int read_option(struct command_options *options, const char *word, const char **ret_value)
{
	for (size_t i = 0; i < options->count; i++) {
		const struct command_option *option = &options->table[i];
		const char *rest;

		if (!option_is(option, word, &rest))
			continue;
		return take_once(options, i) && read_value(options, option, rest, ret_value)
				? (int)i : COMMAND_OPTIONS_BAD;
	}
	complain_unknown(options, word);
	return COMMAND_OPTIONS_BAD;
}

int command_options_next(struct command_options *options, const char **ret_value)
{
	const char *word;

	if (options->next >= options->argc)
		return COMMAND_OPTIONS_END;
	word = options->argv[options->next];
	if (word[0] != '-' || word[1] == '\0')
		return COMMAND_OPTIONS_END;
	options->next++;
	if (strcmp(word, "--") == 0)
		return COMMAND_OPTIONS_END;
	return read_option(options, word, ret_value);
}

bool command_operands_fit(const struct command_options *options, int least, int most,
		const char *expected)
{
	const char *command = options->command;
	int count = options->argc - options->next;

	if (count < least) {
		terminal_complain("%s: expected %s, got nothing%s; see 'shunt help %s'", command,
				expected, count > 0 ? " more" : "", command);
		return false;
	}
	if (count > most) {
		terminal_complain("%s: expected %s, got '%s'%s", command, expected,
				options->argv[options->next + most], most > 0 ? " as well" : "");
		return false;
	}
	return true;
}
