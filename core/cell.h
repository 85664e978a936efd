/* SPDX-License-Identifier: MIT */
/*
 * One target in shared memory: its key, circuit, window, totals and latencies. Fixed widths, no
 * pointers; whatever is read from it is clamped. Owned by the segment.
 */
#ifndef SHUNT_CORE_CELL_H
#define SHUNT_CORE_CELL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/circuit.h"
#include "core/histogram.h"
#include "core/settings.h"
#include "core/target.h"
#include "core/window.h"

#define CELL_NAME_SIZE 64
#define CELL_UNLIMITED UINT32_MAX /* of `concurrency`: off by hand */

enum cell_kind { CELL_CONNECTION, CELL_LOOKUP };

/* Lifetime counters. The rows of CELL_TOTALS are also the order of status --json. */
#define CELL_TOTALS(TOTAL) \
	TOTAL(success) \
	TOTAL(failure) \
	TOTAL(timeout) \
	TOTAL(rejected) \
	TOTAL(short_circuited) \
	TOTAL(cancelled) \
	TOTAL(ignored) \
	TOTAL(fallback) \
	TOTAL(cached) \
	TOTAL(unused) \
	TOTAL(late) \
	TOTAL(injected) \
	TOTAL(trips) \
	TOTAL(rejected_connections) \
	TOTAL(rejected_queue) \
	TOTAL(rejected_pool)

enum cell_total {
#define TOTAL(name) CELL_TOTAL_##name,
	CELL_TOTALS(TOTAL)
#undef TOTAL
	CELL_TOTAL_COUNT
};

/* What makes two processes share a cell. Two keys are equal when all their bytes are: fill it with
 * cell_key_make() only. */
struct cell_key {
	char name[CELL_NAME_SIZE]; /* of the rule; zero-padded */
	char host[HOST_SIZE];      /* as the rule matched it, or "" with per=rule; zero-padded */
	struct address address;    /* family 0 for lookups, per=host and per=rule */
	uint16_t port;             /* 0 where the family is */
	uint8_t kind;              /* enum cell_kind */
	uint8_t reserved;
	uint64_t window_span_ns;
	uint32_t window_buckets;
	uint32_t window_calls;
};

static_assert(sizeof(struct cell_key) == 360, "key layout is shared: bump SEGMENT_VERSION");

/* enum force, 0 for none: by hand, which beats what rules say; and, to be shown, what the rule of
 * whoever acquired last says. */
struct cell_override {
	_Atomic uint32_t force;
	_Atomic uint32_t by_rule;
};

struct cell {
	struct cell_key key;
	struct circuit circuit;
	struct cell_override override;
	_Atomic uint64_t consecutive; /* epoch << 32 | failures in a row */
	_Atomic uint64_t used_ns;     /* last acquire or report, for reuse of idle cells; coarse */
	_Atomic uint64_t totals[16];  /* by enum cell_total */
	struct window outcomes;
	struct window slow;           /* "errors" are the slow calls; used where `slow` is set */
	struct histogram latency;
	/* What `state`, `retry_in_ms` are shown with: the settings of whoever acquired last. */
	_Atomic uint32_t sleep_ms;
	_Atomic uint32_t lease_ms;
	_Atomic uint32_t concurrency; /* by hand, which beats what rules say; 0: as they say */
	_Atomic uint32_t released;    /* places given back while somebody waited: a futex */
};

static_assert(sizeof(struct cell) == 2048, "cell layout is shared: bump SEGMENT_VERSION");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "cells need lock-free 64-bit atomics");

/* Name of a total as status prints it. Static. */
const char *cell_total_name(enum cell_total total);

static inline void cell_count(struct cell *cell, enum cell_total total)
{
	if ((unsigned int)total < CELL_TOTAL_COUNT)
		atomic_fetch_add_explicit(&cell->totals[total], 1, memory_order_relaxed);
}

/* The limit in force, 0: none. */
static inline uint32_t cell_concurrency(const struct cell *cell, uint32_t by_rule)
{
	uint32_t by_hand = atomic_load_explicit(&cell->concurrency, memory_order_relaxed);

	if (by_hand == 0)
		return by_rule;
	return by_hand == CELL_UNLIMITED ? 0 : by_hand;
}

/* For people: "pay.internal 10.1.2.3:443", "10.1.2.3:443", "pay.internal" for what has no address.
 * Any bytes are a legal key; shortened to fit, always terminated. */
void cell_key_describe(const struct cell_key *key, char *ret, size_t size);

#endif
