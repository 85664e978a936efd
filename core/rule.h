/* SPDX-License-Identifier: MIT */
/*
 * One breaker rule: a target and its settings, read from one string.
 *
 *	pay.internal:443 errors=50% volume=20 ignore=ECONNRESET,EPIPE,sleep=2s
 *
 * Space and comma both separate. A word without = that follows ignore= or fail= behind a comma
 * belongs to that list; anywhere else it is an error. ^target takes no settings.
 */
#ifndef SHUNT_CORE_RULE_H
#define SHUNT_CORE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/settings.h"
#include "core/target.h"

#define RULE_NAME_SIZE 64

/* One good breaker rule. */
struct rule {
	char name[RULE_NAME_SIZE]; /* PAY of SHUNT_BREAK_PAY; "default" of SHUNT_BREAK */
	struct target target;
	struct settings settings;
	uint64_t hash; /* of what a cell's key takes from the rule: name and window shape */
	bool is_from_file;
};

/* Letters, digits, _ and -; 1 to 63 of them. */
bool rule_name_is_good(const char *name, size_t length);

/* Fills *ret for a good name. False: *ret is undefined, and `error` (`size` bytes, always
 * terminated) says what is wrong: "sleep: expected a duration such as 250ms, 5s or 1m, got '5'".
 * Takes time linear in `length`; stops at the first fault. */
bool rule_parse(const char *name, const char *text, size_t length, struct rule *ret, char *error,
		size_t size);

/* < 0 if `a` is to be asked first: exclusions, then target_compare(), then the names. */
int rule_compare(const struct rule *a, const struct rule *b);

/* The rule of that name, or NULL. */
const struct rule *rule_find(const struct rule rules[], size_t count, const char *name);

/* Moves rules[last] to where it belongs among those before it, which are in order. */
void rule_place(struct rule rules[], size_t last);

#endif
