/* SPDX-License-Identifier: MIT */
/*
 * The places of all bulkheads: one word each, zero when free, else the seat of the process that
 * holds it and a number. Taken and given back by compare-and-swap, so that no count can drift
 * whoever dies. Places come in blocks; a bulkhead finds its blocks by a hash of its key. Lock-free,
 * async-signal-safe, makes no system call; any bit pattern is a legal table.
 */
#ifndef SHUNT_CORE_PLACE_H
#define SHUNT_CORE_PLACE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/seat.h"

#define PLACE_BLOCKS	 480
#define PLACES_IN_BLOCK 15

struct place_block {
	_Atomic uint64_t owner; /* hash of bulkhead and ordinal; 0: nobody's yet */
	_Atomic uint64_t places[PLACES_IN_BLOCK];
};

static_assert(sizeof(struct place_block) == 128, "layout is shared: bump SEGMENT_VERSION");

struct place_table {
	struct place_block blocks[PLACE_BLOCKS];
};

/* A place that somebody holds, in one word, so that it can be handed from thread to thread by
 * exchange: seat 32 | sequence 19 | number + 1 of the place 13. 0: none. */
typedef uint64_t place_t;

static_assert(PLACE_BLOCKS * PLACES_IN_BLOCK < 1 << 13, "number + 1 fits");

/* The n-th block of a bulkhead; NULL where it has none (yet). With `make` it is given one, free or
 * idle; NULL then means that the table is full. */
struct place_block *place_block(struct place_table *table, uint64_t key, uint32_t ordinal,
		bool make);

/* A block's places. */
struct place_tally {
	uint32_t taken;
	uint32_t beyond; /* of them, behind the first `limit` */
	uint32_t free;   /* the first free one of the first `limit`, or PLACES_IN_BLOCK */
};

struct place_tally place_tally(const struct place_block *block, uint32_t limit);

/* False: somebody was faster, or the block is another bulkhead's by now. `sequence` differs from
 * take to take of one seat. */
bool place_take(struct place_table *table, struct place_block *block, uint64_t key,
		uint32_t ordinal, uint32_t index, seat_t seat, uint32_t sequence,
		place_t *ret_place);

/* True where the place was still held so; giving back twice does nothing. */
bool place_give(struct place_table *table, place_t place);

/* Frees what dead processes hold of a block. How many places that were. */
uint32_t place_reclaim(struct place_block *block, struct seat_table *seats,
		seat_is_alive *is_alive);

#endif
