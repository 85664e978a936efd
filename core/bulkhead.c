/* SPDX-License-Identifier: MIT */
#include "core/bulkhead.h"

#include <stddef.h>

#define BLOCKS ((BULKHEAD_MAX + PLACES_IN_BLOCK - 1) / PLACES_IN_BLOCK)

static uint32_t places_below(uint32_t limit, uint32_t ordinal)
{
	uint32_t before = ordinal * PLACES_IN_BLOCK;

	if (limit <= before)
		return 0;
	return limit - before < PLACES_IN_BLOCK ? limit - before : PLACES_IN_BLOCK;
}

/* What is in flight, and the first free place below the limit. */
struct survey {
	uint32_t taken;
	uint32_t beyond;	 /* of them, behind the limit */
	uint32_t ordinal, index;   /* of the free place */
	struct place_block *block; /* its block; NULL: has to be made */
	bool has_free;
};

static void survey_block(struct survey *survey, struct place_block *block, uint32_t ordinal,
		uint32_t limit)
{
	struct place_tally tally = place_tally(block, places_below(limit, ordinal));

	survey->taken += tally.taken;
	survey->beyond += tally.beyond;
	if (survey->has_free || tally.free == PLACES_IN_BLOCK)
		return;
	survey->has_free = true;
	survey->ordinal = ordinal;
	survey->index = tally.free;
	survey->block = block;
}

/*
 * Blocks are made in order, and one that is idle is given away only when the table is full: beyond
 * the limit, where places count that were taken before it was lowered, the first missing block is
 * the end.
 */
static struct survey survey(const struct bulkhead *bulkhead, uint32_t limit)
{
	struct survey result = { .taken = 0 };

	for (uint32_t ordinal = 0; ordinal < BLOCKS; ordinal++) {
		struct place_block *block =
				place_block(bulkhead->places, bulkhead->key, ordinal, false);
		uint32_t below = places_below(limit, ordinal);

		if (block != NULL)
			survey_block(&result, block, ordinal, limit);
		else if (below == 0)
			break;
		else if (!result.has_free) {
			result.has_free = true;
			result.ordinal = ordinal;
			result.index = 0;
		}
	}
	return result;
}

/* Somebody was faster, who may be so again; but no bytes in the segment shall keep a host here. */
#define TRIES_MAX 1000

static enum bulkhead_answer take_surveyed(const struct bulkhead *bulkhead,
		const struct survey *seen, seat_t seat, uint32_t sequence, place_t *ret_place,
		bool *ret_was_late)
{
	struct place_block *block = seen->block;

	*ret_was_late = false;
	if (block == NULL)
		block = place_block(bulkhead->places, bulkhead->key, seen->ordinal, true);
	if (block == NULL)
		return BULKHEAD_NO_ROOM;
	*ret_was_late = !place_take(bulkhead->places, block, bulkhead->key, seen->ordinal,
			seen->index, seat, sequence, ret_place);
	return BULKHEAD_TAKEN;
}

/* Places below the limit cannot be too many. Those beyond it, taken before it was lowered, make two
 * that come at once one too many together. */
static bool is_one_too_many(const struct bulkhead *bulkhead, const struct survey *seen,
		uint32_t limit)
{
	return seen->beyond > 0 && survey(bulkhead, limit).taken > limit;
}

/* Somebody takes places under this limit: from then on lower ones have to look beyond theirs. */
static void note_limit(struct place_block *first, uint32_t limit)
{
	uint64_t highest = atomic_load_explicit(&first->limit, memory_order_relaxed);

	/* seq_cst: before any place beyond a lower limit is taken. */
	while (highest < limit && !atomic_compare_exchange_weak_explicit(&first->limit, &highest,
					 limit, memory_order_seq_cst, memory_order_relaxed))
		;
}

/* No place was ever given under a higher limit, and this one's are in one block: the first free one
 * will do. */
static bool take_first(const struct bulkhead *bulkhead, seat_t seat, uint32_t limit,
		uint32_t sequence, place_t *ret_place)
{
	struct place_block *first = place_block(bulkhead->places, bulkhead->key, 0, false);
	uint32_t index;

	if (first == NULL || limit > PLACES_IN_BLOCK ||
			atomic_load_explicit(&first->limit, memory_order_relaxed) != limit)
		return false;
	index = place_first_free(first, limit);
	return index < PLACES_IN_BLOCK && place_take(bulkhead->places, first, bulkhead->key, 0,
							  index, seat, sequence, ret_place);
}

__attribute__((noinline)) static enum bulkhead_answer take(const struct bulkhead *bulkhead,
		seat_t seat, uint32_t limit, uint32_t sequence, place_t *ret_place)
{
	struct place_block *first = place_block(bulkhead->places, bulkhead->key, 0, true);

	if (first == NULL)
		return BULKHEAD_NO_ROOM;
	note_limit(first, limit);
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		struct survey seen = survey(bulkhead, limit);
		enum bulkhead_answer answer;
		place_t place;
		bool was_late;

		if (seen.taken >= limit || !seen.has_free)
			return BULKHEAD_FULL;
		answer = take_surveyed(bulkhead, &seen, seat, sequence, &place, &was_late);
		if (answer != BULKHEAD_TAKEN)
			return answer;
		if (was_late)
			continue;
		if (is_one_too_many(bulkhead, &seen, limit)) {
			place_give(bulkhead->places, place);
			return BULKHEAD_FULL;
		}
		*ret_place = place;
		return BULKHEAD_TAKEN;
	}
	return BULKHEAD_FULL;
}

enum bulkhead_answer bulkhead_take(const struct bulkhead *bulkhead, struct holder *holder,
		uint32_t limit, place_t *ret_place)
{
	seat_t seat = atomic_load_explicit(&holder->seat, memory_order_relaxed);
	/* Not one step: that two threads have the same number matters to no place. */
	uint32_t sequence = atomic_load_explicit(&holder->sequence, memory_order_relaxed) + 1;

	atomic_store_explicit(&holder->sequence, sequence, memory_order_relaxed);
	if (limit > BULKHEAD_MAX)
		limit = BULKHEAD_MAX;
	if (seat == 0)
		return BULKHEAD_NO_ROOM;
	if (take_first(bulkhead, seat, limit, sequence, ret_place))
		return BULKHEAD_TAKEN;
	return take(bulkhead, seat, limit, sequence, ret_place);
}

struct bulkhead bulkhead_of(const struct holder *holder, uint64_t cell_hash,
		enum bulkhead_purpose purpose)
{
	return (struct bulkhead){
			holder->places, holder->seats, cell_hash ^ (uint64_t)purpose << 62};
}

/* Calls `each` for every block there is. */
static uint32_t sum(const struct bulkhead *bulkhead,
		uint32_t (*each)(const struct bulkhead *, struct place_block *, seat_is_alive *),
		seat_is_alive *is_alive)
{
	uint32_t total = 0;

	for (uint32_t ordinal = 0; ordinal < BLOCKS; ordinal++) {
		struct place_block *block =
				place_block(bulkhead->places, bulkhead->key, ordinal, false);

		if (block != NULL)
			total += each(bulkhead, block, is_alive);
	}
	return total;
}

static uint32_t count_block(const struct bulkhead *bulkhead, struct place_block *block,
		seat_is_alive *is_alive)
{
	(void)bulkhead;
	(void)is_alive;
	return place_tally(block, 0).taken;
}

static uint32_t reclaim_block(const struct bulkhead *bulkhead, struct place_block *block,
		seat_is_alive *is_alive)
{
	return place_reclaim(block, bulkhead->seats, is_alive);
}

uint32_t bulkhead_in_flight(const struct bulkhead *bulkhead)
{
	return sum(bulkhead, count_block, NULL);
}

uint32_t bulkhead_reclaim(const struct bulkhead *bulkhead, seat_is_alive *is_alive)
{
	return sum(bulkhead, reclaim_block, is_alive);
}
