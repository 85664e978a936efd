/* SPDX-License-Identifier: MIT */
#include "cli/wrapper_option.h"

#include <string.h>

#define WORD_SIZE 64

static bool is_listed(const char *list, const char *word, size_t length)
{
	char entry[WORD_SIZE];

	if (length + 3 > sizeof(entry))
		return false;
	entry[0] = ' ';
	memcpy(entry + 1, word, length);
	memcpy(entry + 1 + length, " ", sizeof(" "));
	return strstr(list, entry);
}

bool wrapper_option_is_listed(const char *list, const char *word)
{
	size_t length = strcspn(word, "=");

	return is_listed(list, word, length) ||
			(word[length] == '=' && is_listed(list, word, length + 1));
}

/* Does the word of letters take the next word with it? *ret_is_known: all its letters are. */
static bool letters_take_next(const struct wrapper_options *options, const char *letters,
		bool *ret_is_known)
{
	*ret_is_known = true;
	for (; *letters; letters++) {
		if (strchr(options->letters_with_value, *letters))
			return letters[1] == '\0';
		if (!strchr(options->letters, *letters))
			*ret_is_known = false;
	}
	return false;
}

bool wrapper_options_skip(const struct wrapper_options *options, const struct arguments *arguments,
		size_t *at)
{
	const char *word;

	while ((word = arguments_at(arguments, *at)) && word[0] == '-' && word[1] != '\0') {
		bool is_known = true;

		(*at)++;
		if (strcmp(word, "--") == 0)
			return true;
		if (word[1] != '-')
			*at += letters_take_next(options, word + 1, &is_known);
		else if (wrapper_option_is_listed(options->words_with_value, word))
			*at += !strchr(word, '=');
		else
			is_known = wrapper_option_is_listed(options->words, word);
		if (!is_known)
			return false;
	}
	return true;
}
