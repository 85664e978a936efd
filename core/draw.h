/* SPDX-License-Identifier: MIT */
/*
 * Numbers that look random and are a function of what they are for, so that threads may draw in any
 * order. Not for secrets. Pure, async-signal-safe.
 */
#ifndef SHUNT_CORE_DRAW_H
#define SHUNT_CORE_DRAW_H

#include <stdint.h>

struct draw {
	uint64_t seed, rule;
	uint32_t connection, call;
};

/* The `index`th number of a draw: 64 even bits. Stable: reports of one seed are compared. */
uint64_t draw_number(const struct draw *draw, uint32_t index);

/* Makes such a number one of 0 to limit - 1; 0 of limit 0. */
uint64_t draw_below(uint64_t number, uint64_t limit);

/* Makes it a normal deviate in 65536ths of sigma, cut at 3 sigma. */
int32_t draw_normal(uint64_t number);

#endif
