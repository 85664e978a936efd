/* SPDX-License-Identifier: MIT */
/* Which rules apply to an endpoint, in which order, and why: for people. */
#ifndef SHUNT_CLI_EXPLAIN_H
#define SHUNT_CLI_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/config.h"
#include "core/target.h"

#define EXPLAIN_WHY_SIZE 640

enum explain_verdict {
	EXPLAIN_APPLIES,
	EXPLAIN_EXCLUDES, /* ^target: keeps it out of all others */
	EXPLAIN_SHADOWED, /* matches, but another comes first */
	EXPLAIN_DIFFERS,  /* does not match */
	EXPLAIN_VERDICT_COUNT
};

struct explanation {
	enum explain_verdict verdict;
	char why[EXPLAIN_WHY_SIZE];
};

/* "applies", "excludes", "shadowed", "no match". Static. */
const char *explain_verdict_name(enum explain_verdict verdict);

/* Of each breaker rule in the order in which they are asked; `ret` has room for rule_count. An
 * endpoint that is no lookup and has no address is a name that could not be resolved. */
void explain_rules(const struct config *config, const struct endpoint *endpoint,
		struct explanation *ret);

/* The same of fault rules: all that match apply, unless one of them excludes the endpoint. */
void explain_faults(const struct fault faults[], size_t count, const struct endpoint *endpoint,
		struct explanation *ret);

#endif
