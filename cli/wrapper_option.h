/* SPDX-License-Identifier: MIT */
/* The options of programs that start others, as far as it takes to find what stands behind them. */
#ifndef SHUNT_CLI_WRAPPER_OPTION_H
#define SHUNT_CLI_WRAPPER_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/arguments.h"

enum wrapper_answer {
	WRAPPER_NONE,  /* no such program, or nothing behind it: it is meant itself */
	WRAPPER_RUNS,  /* the arguments are now what it starts */
	WRAPPER_HIDES, /* it starts something that cannot be told from here */
};

/* Lists of words begin and end with a blank. */
struct wrapper_options {
	const char *letters_with_value;
	const char *letters;
	const char *words_with_value;
	const char *words;
};

/* Is `word`, up to its =, in the list? An entry that ends with = wants one in the word. */
bool wrapper_option_is_listed(const char *list, const char *word);

/* Moves *at behind the options that begin there, and behind a "--". False where one is unknown. */
bool wrapper_options_skip(const struct wrapper_options *options, const struct arguments *arguments,
		size_t *at);

#endif
