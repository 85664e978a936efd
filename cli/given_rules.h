/* SPDX-License-Identifier: MIT */
/* Rules that were given as options of `run`, on their way into the environment. */
#ifndef SHUNT_CLI_GIVEN_RULES_H
#define SHUNT_CLI_GIVEN_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/config.h"

#define GIVEN_VARIABLE_SIZE (sizeof("SHUNT_BREAK_") + RULE_NAME_SIZE)

enum given_kind { GIVEN_BREAK, GIVEN_FAULT };

struct given_rule {
	enum given_kind kind;
	const char *text;
	char variable[GIVEN_VARIABLE_SIZE]; /* that carries it */
};

struct given_rules {
	struct given_rule rules[CONFIG_MAX_RULES];
	size_t count;
};

/* False, after a complaint, where there are too many. */
bool given_rules_add(struct given_rules *given, enum given_kind kind, const char *text);

/*
 * Puts them into the environment, and loads that. A breaker rule beats one of the environment or a
 * file for the same target by taking its name: of two rules with one target, the order of their
 * names would decide. Fault rules beat nothing, as all that match apply.
 */
void given_rules_set(struct given_rules *given, struct config *config);

/* The problems of *config on standard error, those of options under the option's name. */
void given_rules_complain(const struct given_rules *given, const struct config *config);

#endif
