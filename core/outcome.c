/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"

#include <string.h>

static const char *const names[OUTCOME_COUNT] = {
	[OUTCOME_NONE] = "none",
	[OUTCOME_SUCCESS] = "success",
	[OUTCOME_FAILURE] = "failure",
	[OUTCOME_TIMEOUT] = "timeout",
	[OUTCOME_REJECTED] = "rejected",
	[OUTCOME_SHORT_CIRCUITED] = "short_circuited",
	[OUTCOME_CANCELLED] = "cancelled",
	[OUTCOME_IGNORED] = "ignored",
	[OUTCOME_UNUSED] = "unused",
};

const char *outcome_name(enum outcome outcome)
{
	return (unsigned int)outcome < OUTCOME_COUNT ? names[outcome] : "?";
}

enum outcome outcome_from_name(const char *name)
{
	for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
		if (strcmp(names[i], name) == 0)
			return (enum outcome)i;
	}
	return OUTCOME_NONE;
}
