/* SPDX-License-Identifier: MIT */
/*
 * How long nothing was sent or received, and how long a program sat waiting for a greeting. Knows
 * no time but what it is told, in nanoseconds of CLOCK_MONOTONIC, coarse or not; threads may share
 * one.
 */
#ifndef SHUNT_SHIM_SILENCE_H
#define SHUNT_SHIM_SILENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

/* The lowest bit of a time, a nanosecond: nothing was sent or received since. */
#define SILENCE_UNBROKEN 1ull

struct silence {
	_Atomic uint64_t active_ns;  /* the last byte, or the call's beginning and the bit */
	_Atomic uint64_t longest_ns; /* of the stretches before that */
	_Atomic uint64_t established_ns;
	_Atomic uint64_t greeting_ns; /* sum of the waits for a greeting that returned */
	_Atomic uint64_t waiting_ns;  /* since when one lasts; 0: none does */
};

/* A new connection; a call on one. */
void silence_begin(struct silence *silence, uint64_t now_ns);
void silence_begin_call(struct silence *silence, uint64_t now_ns);

/* The slow half of the next. */
void silence_lengthen(struct silence *silence, uint64_t stretch_ns);

/* When something was last sent or received, or else the call began. */
static inline uint64_t silence_active_ns(const struct silence *silence)
{
	return atomic_load_explicit(&silence->active_ns, memory_order_relaxed) & ~SILENCE_UNBROKEN;
}

/* Was anything sent or received in the call? */
static inline bool silence_is_broken(const struct silence *silence)
{
	return !(atomic_load_explicit(&silence->active_ns, memory_order_relaxed) &
			SILENCE_UNBROKEN);
}

/* Something was sent or received. */
static inline void silence_break(struct silence *silence, uint64_t now_ns)
{
	uint64_t active_ns = now_ns & ~SILENCE_UNBROKEN;
	uint64_t stretch_ns = clock_elapsed_ns(silence_active_ns(silence), active_ns);

	if (stretch_ns > atomic_load_explicit(&silence->longest_ns, memory_order_relaxed))
		silence_lengthen(silence, stretch_ns);
	atomic_store_explicit(&silence->active_ns, active_ns, memory_order_relaxed);
}

void silence_establish(struct silence *silence, uint64_t now_ns);

/* The longest stretch of the call, the present one included. */
uint64_t silence_longest_ns(const struct silence *silence, uint64_t now_ns);

uint64_t silence_since_established_ns(const struct silence *silence, uint64_t now_ns);

/* A wait for a greeting. `began_ns` 0: it was none. Of a wait nothing before the connection was
 * established counts. */
void silence_wait_begins(struct silence *silence, uint64_t now_ns);
void silence_wait_ends(struct silence *silence, uint64_t began_ns, uint64_t now_ns);

/* Since when a wait lasts, 0: none does. The sum of those before it. */
static inline uint64_t silence_waiting_ns(const struct silence *silence)
{
	return atomic_load_explicit(&silence->waiting_ns, memory_order_relaxed);
}

static inline uint64_t silence_waits_ns(const struct silence *silence)
{
	return atomic_load_explicit(&silence->greeting_ns, memory_order_relaxed);
}

/* All waits, one that has not returned (yet) included. */
uint64_t silence_greeting_ns(const struct silence *silence, uint64_t now_ns);

#endif
