/* SPDX-License-Identifier: MIT */
/* The words of a rule, breaker or fault, and its target. Pure. */
#ifndef SHUNT_CORE_RULE_WORD_H
#define SHUNT_CORE_RULE_WORD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/target.h"

#define RULE_WORD_SIZE 512

/* What is left of a rule's text. */
struct rule_words {
	const char *at;
	const char *end;
};

struct rule_word {
	const char *text; /* not terminated */
	size_t length;
	bool behind_comma;
};

/* Takes the next word off the front; false behind the last. Space and comma separate. */
bool rule_word_next(struct rule_words *words, struct rule_word *ret);

/* Terminated; false if it is too long or no text. */
bool rule_word_copy(const struct rule_word *word, char ret[RULE_WORD_SIZE]);

/* "expected X, got 'word'" into `error`. Returns false. */
bool rule_word_say(const char *expected, const struct rule_word *word, char *error, size_t size);

/* Reads a target. False, and `error` says what was expected and meant. `copy`: room for it. */
bool rule_word_target(const struct rule_word *word, char copy[RULE_WORD_SIZE], struct target *ret,
		char *error, size_t size);

#endif
