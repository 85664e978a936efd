/* SPDX-License-Identifier: MIT */
/*
 * Beneath the faults. Where fault rules exist, the table of real functions that all hooks call is
 * pointed at functions which inject them, and those call the real ones through here: so hooks and
 * the breaker see a failure as they would see a real one, and without fault rules nothing of it is
 * on any path.
 */
#ifndef SHUNT_SHIM_BELOW_H
#define SHUNT_SHIM_BELOW_H

#include "shim/real.h"

extern struct real below_table __attribute__((visibility("hidden")));

static inline struct real *below(void)
{
	return &below_table;
}

/* Copies the table of real functions, before any entry of it is replaced. At most once. */
void below_start(void);

/* Points an entry of the table of real functions at `function`. release: whoever calls it finds
 * what it needs. */
#define REPLACE(name, function) \
	do { \
		__typeof__(name) *replacement = (function); \
		__atomic_store_n(&real()->name, replacement, __ATOMIC_RELEASE); \
	} while (0)

#endif
