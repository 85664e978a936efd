/* SPDX-License-Identifier: MIT */
#include "cli/wrapper_env.h"

#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"
#include "core/text.h"

#define UNSETS_MAX 64
#define SPLITS_MAX 8 /* -S may bring another -S */

/* What the options ask for: nothing of it is done before there is a command. */
struct reading {
	struct arguments *arguments;
	size_t at; /* the next word */
	bool is_empty; /* -i */
	const char *unsets[UNSETS_MAX];
	size_t unset_count;
	const char *directory;
	int splits;
};

/* One word of a -S string into `ret`; NULL where it holds what only env itself can say. */
static const char *split_word(const char *text, char *ret)
{
	char quote = '\0';

	for (; *text && (quote || !strchr(" \t\r\n\v\f", *text)); text++) {
		if (*text == '\\' || *text == '$')
			return NULL;
		if (*text == quote)
			quote = '\0';
		else if (!quote && (*text == '\'' || *text == '"'))
			quote = *text;
		else
			*ret++ = *text;
	}
	*ret = '\0';
	return quote ? NULL : text;
}

/* The words of the string take the place of the option. */
static bool reading_split(struct reading *reading, const char *text)
{
	char *word = malloc(strlen(text) + 1);
	size_t at = reading->at;

	if (!word)
		terminal_die_without_memory();
	while (text && *(text += strspn(text, " \t\r\n\v\f")) && *text != '#') {
		text = split_word(text, word);
		if (text)
			arguments_insert(reading->arguments, at++, word);
	}
	free(word);
	return text && ++reading->splits < SPLITS_MAX;
}

static bool reading_take(struct reading *reading, char letter, const char *value)
{
	if (!value)
		return false;
	if (letter == 'C')
		reading->directory = value;
	else if (letter == 'S')
		return reading_split(reading, value);
	else if (reading->unset_count < UNSETS_MAX)
		reading->unsets[reading->unset_count++] = value;
	else
		return false;
	return true;
}

/* "-vS STRING", "-uNAME". */
static bool reading_letters(struct reading *reading, const char *letters)
{
	for (; *letters; letters++) {
		if (*letters == 'i')
			reading->is_empty = true;
		else if (strchr("uCS", *letters))
			return reading_take(reading, *letters, letters[1]
					? letters + 1
					: arguments_at(reading->arguments, reading->at++));
		else if (!strchr("0v", *letters))
			return false;
	}
	return true;
}

static bool reading_word(struct reading *reading, const char *word)
{
	static const struct {
		const char *name;
		char letter;
	} options[] = {
		{ "--unset", 'u' },
		{ "--chdir", 'C' },
		{ "--split-string", 'S' },
	};
	const char *value = strchr(word, '=');
	size_t length = strcspn(word, "=");

	if (strcmp(word, "--ignore-environment") == 0) {
		reading->is_empty = true;
		return true;
	}
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strlen(options[i].name) == length &&
				strncmp(word, options[i].name, length) == 0)
			return reading_take(reading, options[i].letter, value
					? value + 1
					: arguments_at(reading->arguments, reading->at++));
	}
	return wrapper_option_is_listed(" --null --debug --block-signal --default-signal "
					"--ignore-signal ", word);
}

static bool reading_options(struct reading *reading)
{
	const char *word;

	while ((word = arguments_at(reading->arguments, reading->at)) && word[0] == '-') {
		bool is_known = true;

		reading->at++;
		if (strcmp(word, "--") == 0)
			return true;
		if (word[1] == '\0')
			reading->is_empty = true;
		else if (word[1] == '-')
			is_known = reading_word(reading, word);
		else
			is_known = reading_letters(reading, word + 1);
		if (!is_known)
			return false;
	}
	return true;
}

bool wrapper_env_assign(struct environment *environment, const char *word)
{
	const char *equals = strchr(word, '=');
	char *name;

	if (!equals)
		return false;
	name = strndup(word, (size_t)(equals - word));
	if (!name)
		terminal_die_without_memory();
	environment_set(environment, name, equals + 1);
	free(name);
	return true;
}

static void reading_apply(const struct reading *reading, size_t command,
		struct environment *environment)
{
	if (reading->is_empty)
		environment_unset_all(environment, "");
	for (size_t i = 0; i < reading->unset_count; i++)
		environment_unset(environment, reading->unsets[i]);
	for (size_t i = reading->at; i < command; i++)
		wrapper_env_assign(environment, reading->arguments->words[i]);
}

enum wrapper_answer wrapper_env_open(struct arguments *arguments, struct environment *environment,
		char *ret_directory)
{
	struct reading reading = { .arguments = arguments, .at = 1 };
	size_t command;

	if (!reading_options(&reading))
		return WRAPPER_HIDES;
	for (command = reading.at; command < arguments->count; command++) {
		if (!strchr(arguments->words[command], '='))
			break;
	}
	if (command >= arguments->count)
		return WRAPPER_NONE;
	reading_apply(&reading, command, environment);
	text_copy(ret_directory, PATH_MAX, reading.directory ? reading.directory : "");
	arguments_drop(arguments, command);
	return WRAPPER_RUNS;
}
