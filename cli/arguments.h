/* SPDX-License-Identifier: MIT */
/* A command line that is taken apart and put together as kernel, env(1) and others do. */
#ifndef SHUNT_CLI_ARGUMENTS_H
#define SHUNT_CLI_ARGUMENTS_H

#include <stddef.h>

/* Zeroed: none. */
struct arguments {
	char **words; /* ends with NULL; NULL itself while there was none */
	size_t count;
};

/* `words` ends with NULL. Ends the command without memory, as all that add words. */
void arguments_copy(struct arguments *arguments, char *const words[]);

/* The word, or NULL behind the last. */
const char *arguments_at(const struct arguments *arguments, size_t index);

/* A copy of `word` before words[at]; at the end where there is no such word. */
void arguments_insert(struct arguments *arguments, size_t at, const char *word);

/* Takes words[at] out, if it is there. */
void arguments_remove(struct arguments *arguments, size_t at);

/* Takes the first `count` out. */
void arguments_drop(struct arguments *arguments, size_t count);

void arguments_finish(struct arguments *arguments);

/* What stands behind the last slash. */
const char *arguments_base_name(const char *path);

#endif
