/* SPDX-License-Identifier: MIT */
/*
 * Calls in flight, over all processes: at most `limit` hold a place. A bulkhead is a key and the
 * tables of the segment; nothing is made for one that nobody uses. (Hystrix: the semaphore.)
 * Lock-free, async-signal-safe.
 */
#ifndef SHUNT_CORE_BULKHEAD_H
#define SHUNT_CORE_BULKHEAD_H

#include <stdint.h>

#include "core/place.h"
#include "core/seat.h"

#define BULKHEAD_MAX 1024 /* places */

struct bulkhead {
	struct place_table *places;
	struct seat_table *seats;
	uint64_t key; /* of target and purpose */
};

/* A process that holds places: one for all its bulkheads. */
struct holder {
	struct place_table *places; /* NULL: nothing is limited */
	struct seat_table *seats;
	_Atomic seat_t seat; /* 0: none (yet) */
	_Atomic uint32_t sequence;
};

enum bulkhead_answer {
	BULKHEAD_TAKEN,
	BULKHEAD_FULL,
	BULKHEAD_NO_ROOM /* no block left in the segment, or no seat: when in doubt, not limited */
};

/* What a target's bulkheads are for. */
enum bulkhead_purpose { BULKHEAD_CALLS, BULKHEAD_QUEUE, BULKHEAD_CONNECTIONS, BULKHEAD_FALLBACK };

/* Of a target, by the hash of its cell's key. */
struct bulkhead bulkhead_of(const struct holder *holder, uint64_t cell_hash,
		enum bulkhead_purpose purpose);

/*
 * Takes a place for the holder, of at most `limit` (clamped to BULKHEAD_MAX). Where the limit was
 * lowered below what is in flight, none is given until less is. *ret_place is set where taken; give
 * it back with place_give().
 */
enum bulkhead_answer bulkhead_take(const struct bulkhead *bulkhead, struct holder *holder,
		uint32_t limit, place_t *ret_place);

/* How many places are taken, the dead's included. */
uint32_t bulkhead_in_flight(const struct bulkhead *bulkhead);

/* Frees the places of dead processes. How many those were. Asks `is_alive` once a taken place. */
uint32_t bulkhead_reclaim(const struct bulkhead *bulkhead, seat_is_alive *is_alive);

#endif
