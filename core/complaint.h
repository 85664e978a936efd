/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a fault rule, in words: into a buffer of the caller's, terminated and cut to
 * fit. Each returns false, so that it can be returned. Out of line: rules are read in the host's
 * calls, too, on what is left of its stacks.
 */
#ifndef SHUNT_CORE_COMPLAINT_H
#define SHUNT_CORE_COMPLAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/fault.h"
#include "core/fault_term.h"

struct complaint {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) bool complaint_say(
		const struct complaint *complaint, const char *format, ...);

/* What is no target, but where it has to stand was taken for one. */
bool complaint_first(const struct fault *fault, const struct complaint *complaint);

/* No term has that name; with the nearest that there is. */
bool complaint_unknown(
		const struct fault *fault, const char *name, const struct complaint *complaint);

/* The value of a term is not what it takes; with what may have been meant. NULL: it has none. */
bool complaint_expected(const struct fault_term *term, const char *expected, const char *value,
		const struct complaint *complaint);

/* The rule has the term already. */
bool complaint_twice(const struct fault_term *term, const char *value,
		const struct complaint *complaint);

/* None of the calls that were asked for (enum possible_call) can fail with the rule's error. */
bool complaint_impossible(const struct fault *fault, unsigned int asked,
		const struct complaint *complaint);

#endif
