/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "core/bulkhead.h"

static struct place_table places;
static struct seat_table seats;
static struct bulkhead bulkhead = { &places, &seats, 0x5eed };
static uint32_t dead_pid;

static bool is_alive(struct seat_owner owner)
{
	return owner.pid != dead_pid;
}

static struct holder holder_of(uint32_t pid)
{
	seat_t seat = seat_take(&seats, (struct seat_owner){ pid, 1 }, is_alive);

	return (struct holder){ &places, &seats, seat, 0 };
}

static bool take(struct holder *holder, uint32_t limit, place_t *place)
{
	return bulkhead_take(&bulkhead, holder, limit, place) == BULKHEAD_TAKEN;
}

Test(bulkhead, the_eleventh_of_ten_is_refused_until_one_ends)
{
	place_t held[11];
	struct holder holder = holder_of(100);

	for (int i = 0; i < 10; i++)
		cr_assert(take(&holder, 10, &held[i]));
	cr_expect_not(take(&holder, 10, &held[10]));
	cr_expect_eq(bulkhead_in_flight(&bulkhead), 10);
	place_give(&places, held[3]);
	cr_expect(take(&holder, 10, &held[10]));
	cr_expect_not(take(&holder, 10, &held[3]));
}

Test(bulkhead, as_many_as_the_limit_at_any_size)
{
	static const uint32_t limits[] = { 1, 2, 14, 15, 16, 100, BULKHEAD_MAX };
	place_t place;
	struct holder holder = holder_of(100);

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint32_t count = 0;

		bulkhead.key = i + 1;
		while (take(&holder, limits[i], &place))
			count++;
		cr_expect_eq(count, limits[i]);
		cr_expect_eq(bulkhead_in_flight(&bulkhead), limits[i]);
	}
}

Test(bulkhead, a_lowered_limit_holds_until_enough_have_ended)
{
	place_t held[100], place;
	struct holder holder = holder_of(100);

	for (int i = 0; i < 100; i++)
		cr_assert(take(&holder, 100, &held[i]));
	/* The low ones end: their places are below the new limit, but 90 are in flight. */
	for (int i = 0; i < 10; i++)
		place_give(&places, held[i]);
	cr_expect_not(take(&holder, 10, &place));
	for (int i = 10; i < 91; i++)
		place_give(&places, held[i]);
	cr_expect(take(&holder, 10, &place));
	cr_expect_not(take(&holder, 10, &place));
	cr_expect(take(&holder, 11, &place));
}

Test(bulkhead, zero_admits_nobody)
{
	struct holder holder = holder_of(100);
	place_t place;

	cr_expect_not(take(&holder, 0, &place));
}

Test(bulkhead, without_a_seat_nothing_is_limited)
{
	struct holder holder = { &places, &seats, 0, 0 };
	place_t place;

	cr_expect_eq(bulkhead_take(&bulkhead, &holder, 10, &place), BULKHEAD_NO_ROOM);
}

Test(bulkhead, the_places_of_the_dead_come_back_and_those_of_the_living_stay)
{
	place_t place;
	struct holder killed = holder_of(100), living = holder_of(101);

	for (int i = 0; i < 30; i++)
		cr_assert(take(i % 3 ? &killed : &living, 30, &place));
	cr_expect_not(take(&living, 30, &place));
	dead_pid = 100;
	cr_expect_eq(bulkhead_reclaim(&bulkhead, is_alive), 20);
	cr_expect_eq(bulkhead_in_flight(&bulkhead), 10);
	cr_expect_eq(bulkhead_reclaim(&bulkhead, is_alive), 0);
}

Test(bulkhead, any_bytes_are_answered)
{
	struct holder holder = holder_of(1);
	place_t place;

	memset(&places, 0xff, sizeof(places));
	cr_expect_eq(bulkhead_take(&bulkhead, &holder, 10, &place), BULKHEAD_NO_ROOM);
}

#define THREADS 8
#define TURNS	20000
#define LIMIT	3

static _Atomic int inside, most;

static void *contend(void *argument)
{
	struct holder holder = holder_of((uint32_t)(uintptr_t)argument);
	long *taken = calloc(1, sizeof(*taken));

	for (uint32_t turn = 1; turn <= TURNS; turn++) {
		place_t place;
		int now, seen;

		if (!take(&holder, LIMIT, &place))
			continue;
		now = atomic_fetch_add(&inside, 1) + 1;
		seen = atomic_load(&most);
		while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
			;
		++*taken;
		atomic_fetch_sub(&inside, 1);
		cr_assert(place_give(&places, place));
	}
	return taken;
}

Test(bulkhead, threads_never_hold_more_than_the_limit)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, contend, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++) {
		long *taken;

		pthread_join(threads[i], (void **)&taken);
		cr_expect_gt(*taken, 0);
		free(taken);
	}
	cr_expect_leq(atomic_load(&most), LIMIT);
	cr_expect_eq(bulkhead_in_flight(&bulkhead), 0);
}
