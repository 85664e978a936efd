/* SPDX-License-Identifier: MIT */
/*
 * Outcomes of the last N seconds, in buckets, or of the last N calls. Lives in shared memory: any
 * process may die between two instructions, any word may hold anything.
 *
 * All functions are lock-free, allocate nothing, and are async-signal-safe. Time is CLOCK_MONOTONIC
 * in nanoseconds, told by the caller. `epoch` is the circuit's: what another epoch recorded is not
 * seen, so closing a circuit empties its window in the same step.
 */
#ifndef SHUNT_CORE_WINDOW_H
#define SHUNT_CORE_WINDOW_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WINDOW_WORDS 64
#define WINDOW_MAX_BUCKETS WINDOW_WORDS
/* Calls are kept 16 to a word; one word is always being overwritten. */
#define WINDOW_MAX_CALLS ((WINDOW_WORDS - 1) * 16)
#define WINDOW_EPOCH_BITS 14

/* `calls` != 0: the last `calls` calls (1..WINDOW_MAX_CALLS). Otherwise `buckets`
 * (1..WINDOW_MAX_BUCKETS) buckets over `span_ns`. Part of a cell's key. */
struct window_shape {
	uint64_t span_ns;
	uint32_t buckets;
	uint32_t calls;
};

struct window {
	/* Time-based: the last tick that an event fell into, and its bucket. Count-based: calls so
	 * far. (A tick is the time in buckets; every word is tagged with its own, cut to eight
	 * bits.) */
	_Atomic uint64_t last;
	_Atomic uint64_t words[WINDOW_WORDS];
};

static_assert(sizeof(struct window) == 520, "window layout is shared: bump SEGMENT_VERSION");

struct window_sum {
	uint64_t total;
	uint64_t errors; /* <= total */
};

/* Counts one call. A full bucket stops counting (both fields), it never wraps. A caller whose time
 * lies a whole window behind the last event is not counted; one that lies a minute behind as well
 * is taken for right, and the last event for one of another boot: the window starts anew. */
void window_record(struct window *window, const struct window_shape *shape, uint32_t epoch,
		uint64_t now_ns, bool error);

/* The current partial bucket and the ones before it. */
struct window_sum window_sum(const struct window *window, const struct window_shape *shape,
		uint32_t epoch, uint64_t now_ns);

/* False where no word holds an error, of whatever time and epoch: then no sum does. Costs less than
 * the sum, which a healthy target so never needs. */
bool window_may_have_errors(const struct window *window, const struct window_shape *shape);

/* Can the sum have changed since the last window_record() only by time passing? Cheap: lets an
 * acquire skip the sum within the bucket that the last outcome was already judged in. */
bool window_has_moved(const struct window *window, const struct window_shape *shape,
		uint64_t now_ns);

#endif
