/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"

#include <string.h>

static const struct {
	const char *name;
	bool is_request, is_error;
} outcomes[OUTCOME_COUNT] = {
	[OUTCOME_NONE] = { "none", false, false },
	[OUTCOME_SUCCESS] = { "success", true, false },
	[OUTCOME_FAILURE] = { "failure", true, true },
	[OUTCOME_TIMEOUT] = { "timeout", true, true },
	[OUTCOME_REJECTED] = { "rejected", true, true },
	[OUTCOME_SHORT_CIRCUITED] = { "short_circuited", false, false },
	[OUTCOME_CANCELLED] = { "cancelled", false, false },
	[OUTCOME_IGNORED] = { "ignored", false, false },
	[OUTCOME_UNUSED] = { "unused", false, false },
};

static bool is_outcome(enum outcome outcome)
{
	return (unsigned int)outcome < OUTCOME_COUNT;
}

const char *outcome_name(enum outcome outcome)
{
	return is_outcome(outcome) ? outcomes[outcome].name : "?";
}

enum outcome outcome_from_name(const char *name)
{
	for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
		if (strcmp(outcomes[i].name, name) == 0)
			return (enum outcome)i;
	}
	return OUTCOME_NONE;
}

bool outcome_is_request(enum outcome outcome)
{
	return is_outcome(outcome) && outcomes[outcome].is_request;
}

bool outcome_is_error(enum outcome outcome)
{
	return is_outcome(outcome) && outcomes[outcome].is_error;
}
