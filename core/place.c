/* SPDX-License-Identifier: MIT */
#include "core/place.h"

#include <stddef.h>

/* How far from where its hash points a block may be. */
#define REACH 16

/* Keys are hashes: they need no more mixing. */
static uint64_t owner_of(uint64_t key, uint32_t ordinal)
{
	uint64_t owner = key + ordinal * UINT64_C(0x9e3779b97f4a7c15);

	return owner ? owner : 1;
}

/* By the upper half: hashes differ there too, and a product is quicker than a remainder. */
static struct place_block *block_at(struct place_table *table, uint64_t owner, uint32_t step)
{
	uint32_t first = (uint32_t)((owner >> 32) * (PLACE_BLOCKS - REACH) >> 32);

	return &table->blocks[first + step];
}

static struct place_block *find(struct place_table *table, uint64_t owner)
{
	for (uint32_t step = 0; step < REACH; step++) {
		struct place_block *block = block_at(table, owner, step);
		uint64_t seen = atomic_load_explicit(&block->owner, memory_order_acquire);

		if (seen == owner)
			return block;
		if (seen == 0)
			return NULL;
	}
	return NULL;
}

/* All who look for the same block try the same ones in the same order, so they agree on it. */
static struct place_block *claim_free(struct place_table *table, uint64_t owner)
{
	for (uint32_t step = 0; step < REACH; step++) {
		struct place_block *block = block_at(table, owner, step);
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong_explicit(&block->owner, &seen, owner,
				    memory_order_acq_rel, memory_order_acquire) ||
				seen == owner)
			return block;
	}
	return NULL;
}

static bool is_idle(const struct place_block *block)
{
	return place_tally(block, 0).taken == 0;
}

/* A bulkhead with nothing in flight needs no block: its next call makes one again. Whoever takes a
 * place of it meanwhile sees that the owner changed, and gives it back. */
static struct place_block *claim_idle(struct place_table *table, uint64_t owner)
{
	for (uint32_t step = 0; step < REACH; step++) {
		struct place_block *block = block_at(table, owner, step);
		uint64_t seen = atomic_load_explicit(&block->owner, memory_order_acquire);

		if (seen == owner)
			return block;
		/* seq_cst, as in place_take(): of owner and place, one of the two sees the other.
		 */
		if (is_idle(block) && (atomic_compare_exchange_strong_explicit(&block->owner, &seen,
						       owner, memory_order_seq_cst,
						       memory_order_acquire) ||
						      seen == owner))
			return block;
	}
	return NULL;
}

/* Once for each block. */
__attribute__((cold, noinline)) static struct place_block *claim(
		struct place_table *table, uint64_t owner)
{
	struct place_block *block = claim_free(table, owner);

	return block != NULL ? block : claim_idle(table, owner);
}

struct place_block *place_block(struct place_table *table, uint64_t key, uint32_t ordinal,
		bool make)
{
	uint64_t owner = owner_of(key, ordinal);
	struct place_block *block = find(table, owner);

	return block != NULL || !make ? block : claim(table, owner);
}

struct place_tally place_tally(const struct place_block *block, uint32_t limit)
{
	struct place_tally tally = { .free = PLACES_IN_BLOCK };

	for (uint32_t i = PLACES_IN_BLOCK; i-- > 0;) {
		bool is_taken = atomic_load_explicit(&block->places[i], memory_order_acquire) != 0;

		tally.taken += is_taken;
		tally.beyond += is_taken && i >= limit;
		if (!is_taken && i < limit)
			tally.free = i;
	}
	return tally;
}

uint32_t place_first_free(const struct place_block *block, uint32_t limit)
{
	for (uint32_t i = 0; i < limit && i < PLACES_IN_BLOCK; i++) {
		if (!atomic_load_explicit(&block->places[i], memory_order_relaxed))
			return i;
	}
	return PLACES_IN_BLOCK;
}

#define NUMBER_BITS 13
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)

/* What stands in the table for a place that is held: all but where that is. */
static uint64_t word_of(place_t place)
{
	return place >> NUMBER_BITS;
}

static place_t make(seat_t seat, uint32_t sequence, uint32_t number)
{
	uint64_t low = (uint64_t)(sequence & ((1u << (32 - NUMBER_BITS)) - 1)) << NUMBER_BITS;

	return (uint64_t)seat << 32 | low | (number + 1);
}

bool place_take(struct place_table *table, struct place_block *block, uint64_t key,
		uint32_t ordinal, uint32_t index, seat_t seat, uint32_t sequence,
		place_t *ret_place)
{
	uint32_t number = (uint32_t)(block - table->blocks) * PLACES_IN_BLOCK + index;
	place_t place = make(seat, sequence, number);
	uint64_t free = 0;

	/* seq_cst: before the owner is looked at again. */
	if (!atomic_compare_exchange_strong_explicit(&block->places[index], &free, word_of(place),
			    memory_order_seq_cst, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&block->owner, memory_order_seq_cst) != owner_of(key, ordinal)) {
		place_give(table, place);
		return false;
	}
	*ret_place = place;
	return true;
}

bool place_give(struct place_table *table, place_t place)
{
	uint32_t number = (uint32_t)(place & NUMBER_MASK) - 1;
	uint64_t held = word_of(place);

	if (number >= PLACE_BLOCKS * PLACES_IN_BLOCK)
		return false;
	/* release: whoever takes it sees all that its holder did. */
	return atomic_compare_exchange_strong_explicit(
			&table->blocks[number / PLACES_IN_BLOCK].places[number % PLACES_IN_BLOCK],
			&held, 0, memory_order_acq_rel, memory_order_relaxed);
}

uint32_t place_reclaim(struct place_block *block, struct seat_table *seats,
		seat_is_alive *is_alive)
{
	uint32_t freed = 0;

	for (uint32_t i = 0; i < PLACES_IN_BLOCK; i++) {
		uint64_t seen = atomic_load_explicit(&block->places[i], memory_order_acquire);

		if (seen && !seat_is_held(seats, (seat_t)(seen >> (32 - NUMBER_BITS)), is_alive) &&
				atomic_compare_exchange_strong_explicit(&block->places[i], &seen, 0,
						memory_order_acq_rel, memory_order_relaxed))
			freed++;
	}
	return freed;
}
