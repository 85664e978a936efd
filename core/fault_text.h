/* SPDX-License-Identifier: MIT */
/* A fault rule read from text, and written again. Pure, no allocation. */
#ifndef SHUNT_CORE_FAULT_TEXT_H
#define SHUNT_CORE_FAULT_TEXT_H

#include "core/fault.h"

/* Fills *ret for a good name. False: *ret is undefined, and `error` (`size` bytes, always
 * terminated) says what is wrong: "rate: expected a rate such as 64KB/s, got '64'". Errors that the
 * call and socket cannot come to are refused here. Takes time linear in `length`. */
bool fault_parse(const char *name, const char *text, size_t length, struct fault *ret, char *error,
		size_t size);

/* The rule as text again, without its name: the target, then terms in the order of the table.
 * fault_parse() reads it as the same rule, but for a target or buffer that was too long. */
void fault_describe(const struct fault *fault, char *ret, size_t size);

#endif
