/* SPDX-License-Identifier: MIT */
/* Names of errors, and sets of them, for ignore= and fail=. Pure, async-signal-safe. */
#ifndef SHUNT_CORE_ERROR_SET_H
#define SHUNT_CORE_ERROR_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* errno values (bit = errno) and EAI_* values (bit = -EAI_x). */
struct error_set {
	uint64_t errnos[3]; /* 0..191 */
	uint64_t eais[2];   /* 0..127 */
};

/* Errors that a call can end with: "ECONNRESET" is its errno, above 0; "EAI_AGAIN" its EAI value,
 * below 0. 0 for any other text, and for EINPROGRESS, EALREADY, EINTR and EAGAIN: those end
 * nothing. */
int error_from_name(const char *name);

/* The name of an errno (> 0) or EAI value (< 0), or NULL. Static. */
const char *error_name(int error);

/* The nearest name for a misspelt one, or NULL. Static. */
const char *error_nearest_name(const char *name);

/* `error` as of error_from_name(). */
void error_set_add(struct error_set *set, int error);

bool error_set_has_errno(const struct error_set *set, int error);
bool error_set_has_eai(const struct error_set *set, int eai);

/* An error that is in both, as of error_from_name(); or 0. */
int error_set_common(const struct error_set *a, const struct error_set *b);

#endif
