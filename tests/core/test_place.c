/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/clock.h"
#include "core/place.h"

static struct place_table table;
static struct seat_table seats;

#define KEY  UINT64_C(0x1234567)
#define SEAT 0x1001

static bool nobody_is_alive(struct seat_owner owner)
{
	(void)owner;
	return false;
}

static bool take(struct place_block *block, uint32_t index, uint32_t sequence, place_t *place)
{
	return place_take(&table, block, KEY, 0, index, SEAT, sequence, place);
}

Test(place, a_block_is_made_once_and_found_again)
{
	struct place_block *block;

	cr_expect_null(place_block(&table, KEY, 0, false));
	block = place_block(&table, KEY, 0, true);
	cr_assert_not_null(block);
	cr_expect_eq(place_block(&table, KEY, 0, true), block);
	cr_expect_eq(place_block(&table, KEY, 0, false), block);
	cr_expect_neq(place_block(&table, KEY, 1, true), block);
	cr_expect_neq(place_block(&table, KEY + 1, 0, true), block);
}

Test(place, one_holds_it_and_gives_it_back_once)
{
	struct place_block *block = place_block(&table, KEY, 0, true);
	place_t place, other;

	cr_assert(take(block, 3, 1, &place));
	cr_expect_not(take(block, 3, 2, &other));
	cr_expect(place_give(&table, place));
	cr_expect_not(place_give(&table, place));
	cr_assert(take(block, 3, 2, &other));
	cr_expect_not(place_give(&table, place), "it is another call's now");
	cr_expect(place_give(&table, other));
	cr_expect_not(place_give(&table, 0));
	cr_expect_not(place_give(&table, UINT64_MAX));
}

Test(place, a_tally_knows_what_is_free_below_a_limit)
{
	struct place_block *block = place_block(&table, KEY, 0, true);
	place_t place;

	cr_assert(take(block, 0, 1, &place));
	cr_assert(take(block, 5, 2, &place));
	cr_expect_eq(place_tally(block, PLACES_IN_BLOCK).free, 1);
	cr_expect_eq(place_tally(block, PLACES_IN_BLOCK).taken, 2);
	cr_expect_eq(place_tally(block, PLACES_IN_BLOCK).beyond, 0);
	cr_expect_eq(place_tally(block, 1).free, PLACES_IN_BLOCK);
	cr_expect_eq(place_tally(block, 1).beyond, 1);
}

Test(place, a_full_table_gives_idle_blocks_away_and_busy_ones_not)
{
	struct place_block *busy = place_block(&table, KEY, 0, true);
	place_t place;
	uint32_t made = 1;

	cr_assert(take(busy, 0, 1, &place));
	for (uint64_t key = 1; key < 20 * PLACE_BLOCKS; key++)
		made += place_block(&table, key << 20, 0, true) != NULL;
	cr_expect_eq(made, 20 * PLACE_BLOCKS, "an idle one is always within reach");
	cr_expect_eq(place_block(&table, KEY, 0, false), busy);
	cr_expect(place_give(&table, place));
}

#define THREADS 2
#define ROUNDS	100000
#define HALF_SECOND_NS 500000000ull

static struct place_block *blocks[THREADS][ROUNDS];
static _Atomic uint64_t arrived;
static _Atomic uint64_t rounds = ROUNDS; /* fewer where the machine is busy */

/* Closer together than a barrier that sleeps lets them go; but one processor is enough. */
static void wait_for_others(uint64_t round)
{
	atomic_fetch_add(&arrived, 1);
	for (uint32_t looks = 1; atomic_load(&arrived) < (round + 1) * THREADS; looks++) {
		if (looks % 1000 == 0)
			sched_yield();
	}
}

static void *ask_for_blocks(void *argument)
{
	struct place_block **mine = argument;
	uint64_t began_ns = clock_now_ns();

	for (uint64_t round = 0; round < atomic_load(&rounds); round++) {
		/* Before it arrives: the other one sees it in this very round. */
		if (mine == blocks[0] && clock_now_ns() - began_ns > HALF_SECOND_NS)
			atomic_store(&rounds, round + 1);
		wait_for_others(round);
		mine[round] = place_block(&table, (round + 1) << 32, 0, true);
	}
	return NULL;
}

/* Two blocks of one bulkhead are twice its limit. */
Test(place, all_who_are_given_an_idle_block_at_once_are_given_the_same)
{
	pthread_t threads[THREADS];
	uint32_t different = 0;

	for (uint32_t i = 0; i < PLACE_BLOCKS; i++)
		atomic_store(&table.blocks[i].owner, UINT64_MAX - i);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, ask_for_blocks, blocks[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t round = 0; round < atomic_load(&rounds); round++)
		for (size_t i = 1; i < THREADS; i++)
			different += blocks[i][round] != blocks[0][round];
	cr_expect_eq(different, 0);
}

Test(place, a_place_of_a_block_that_was_given_away_is_given_back)
{
	struct place_block *block = place_block(&table, KEY, 0, true);
	place_t place;

	atomic_store(&block->owner, 77);
	cr_expect_not(take(block, 0, 1, &place));
	cr_expect_eq(place_tally(block, PLACES_IN_BLOCK).taken, 0);
}

Test(place, the_dead_lose_their_places)
{
	struct place_block *block = place_block(&table, KEY, 0, true);
	place_t place;

	cr_assert(take(block, 0, 1, &place));
	cr_assert(take(block, 9, 2, &place));
	cr_expect_eq(place_reclaim(block, &seats, nobody_is_alive), 2);
	cr_expect_eq(place_tally(block, PLACES_IN_BLOCK).taken, 0);
	cr_expect_not(place_give(&table, place));
}

Test(place, any_bytes_are_a_table)
{
	memset(&table, 0xa5, sizeof(table));
	for (uint64_t key = 0; key < 1000; key++)
		cr_expect_null(place_block(&table, key, 0, true));
}
