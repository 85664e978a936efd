/* SPDX-License-Identifier: MIT */
/* How a call ended, and which endings count. */
#ifndef SHUNT_CORE_OUTCOME_H
#define SHUNT_CORE_OUTCOME_H

#include <stdbool.h>

/*
 * NONE means "still open". FAILURE, TIMEOUT and REJECTED are errors; with SUCCESS they are the
 * requests of a window. The rest is never counted there (docs/BEHAVIOUR.md section 3). UNUSED gives
 * the permit back without any effect: a probe's slot is free again.
 */
enum outcome {
	OUTCOME_NONE,
	OUTCOME_SUCCESS,
	OUTCOME_FAILURE,
	OUTCOME_TIMEOUT,
	OUTCOME_REJECTED,
	OUTCOME_SHORT_CIRCUITED,
	OUTCOME_CANCELLED,
	OUTCOME_IGNORED,
	OUTCOME_UNUSED,
	OUTCOME_COUNT
};

/* The name as the docs, status and the traces spell it; "?" for a value out of range. Static. */
const char *outcome_name(enum outcome outcome);

/* The outcome of that name, or OUTCOME_NONE. */
enum outcome outcome_from_name(const char *name);

/* Is it part of a window's errors? */
static inline bool outcome_is_error(enum outcome outcome)
{
	return outcome == OUTCOME_FAILURE || outcome == OUTCOME_TIMEOUT ||
	       outcome == OUTCOME_REJECTED;
}

/* Is it part of a window's requests? */
static inline bool outcome_is_request(enum outcome outcome)
{
	return outcome == OUTCOME_SUCCESS || outcome_is_error(outcome);
}

#endif
