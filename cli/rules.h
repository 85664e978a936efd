/* SPDX-License-Identifier: MIT */
/* Every rule that a process of this user, or our own environment, knows. */
#ifndef SHUNT_CLI_RULES_H
#define SHUNT_CLI_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/state.h"

#define RULES_MAX (SEGMENT_RULES + CONFIG_MAX_RULES + CONFIG_MAX_PROBLEMS)

struct known_rule {
	char name[CELL_NAME_SIZE];
	uint64_t matched;                /* calls that it was applied to */
	char error[CONFIG_PROBLEM_SIZE]; /* "" for a good rule */
};

/* The rules in order of name; `ret` has room for RULES_MAX. What our own environment says of a rule
 * counts for more than what another process wrote down. */
size_t rules_gather(const struct state *state, struct known_rule *ret);

/* Is there one, of breakers or faults, that is no exclusion? */
bool rules_do_something(const struct config *config);

#endif
