/* SPDX-License-Identifier: MIT */
#include "cli/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

void arguments_copy(struct arguments *arguments, char *const words[])
{
	*arguments = (struct arguments){ 0 };
	for (size_t i = 0; words[i]; i++)
		arguments_insert(arguments, i, words[i]);
}

const char *arguments_at(const struct arguments *arguments, size_t index)
{
	return index < arguments->count ? arguments->words[index] : NULL;
}

void arguments_insert(struct arguments *arguments, size_t at, const char *word)
{
	char **words = realloc(arguments->words, (arguments->count + 2) * sizeof(*words));
	char *copy = strdup(word);

	if (!words || !copy)
		terminal_die_without_memory();
	if (at > arguments->count)
		at = arguments->count;
	memmove(&words[at + 1], &words[at], (arguments->count - at) * sizeof(*words));
	words[at] = copy;
	arguments->words = words;
	arguments->count++;
	words[arguments->count] = NULL;
}

void arguments_remove(struct arguments *arguments, size_t at)
{
	if (at >= arguments->count)
		return;
	free(arguments->words[at]);
	/* With the NULL at the end. */
	memmove(&arguments->words[at], &arguments->words[at + 1],
			(arguments->count - at) * sizeof(*arguments->words));
	arguments->count--;
}

void arguments_drop(struct arguments *arguments, size_t count)
{
	while (count-- > 0)
		arguments_remove(arguments, 0);
}

void arguments_finish(struct arguments *arguments)
{
	arguments_drop(arguments, arguments->count);
	free(arguments->words);
	*arguments = (struct arguments){ 0 };
}

const char *arguments_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
