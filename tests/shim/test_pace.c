/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "shim/pace.h"

#define SECOND_NS 1000000000ull
#define RATE	  64000ull

Test(pace, after_the_first_piece_nothing_moves_before_it_is_paid_for)
{
	struct pace pace = { 0 };
	uint64_t due_ns, now_ns = 2 * SECOND_NS, first = pace_room(&pace, RATE, now_ns, &due_ns);

	cr_expect_gt(first, 0);
	cr_expect_leq(first, RATE / 50);
	pace_take(&pace, RATE, first, now_ns);
	cr_expect_eq(pace_room(&pace, RATE, now_ns, &due_ns), 0);
	cr_expect_gt(due_ns, now_ns);
	cr_expect_eq(pace_room(&pace, RATE, due_ns - 1, &due_ns), 0);
	cr_expect_gt(pace_room(&pace, RATE, due_ns, &due_ns), 0);
}

Test(pace, what_moves_in_ten_seconds_is_ten_seconds_worth)
{
	struct pace pace = { 0 };
	uint64_t due_ns, began_ns = SECOND_NS, now_ns = began_ns, moved = 0, room;

	while (moved < 10 * RATE) {
		room = pace_room(&pace, RATE, now_ns, &due_ns);
		pace_take(&pace, RATE, room, now_ns);
		moved += room;
		if (!room)
			now_ns = due_ns;
	}
	/* But for the first piece. */
	cr_expect_geq(now_ns - began_ns, 10 * SECOND_NS - SECOND_NS / 50 - 1);
	cr_expect_leq(now_ns - began_ns, 10 * SECOND_NS + SECOND_NS / 10);
}

Test(pace, who_was_away_for_long_finds_a_fifth_of_a_second_and_no_more)
{
	struct pace pace = { 0 };
	uint64_t due_ns;

	pace_room(&pace, RATE, SECOND_NS, &due_ns);
	cr_expect_eq(pace_room(&pace, RATE, 3600 * SECOND_NS, &due_ns), RATE / 5);
}

Test(pace, a_byte_a_second_is_a_byte_each_second)
{
	struct pace pace = { 0 };
	uint64_t due_ns;

	cr_expect_eq(pace_room(&pace, 1, 2 * SECOND_NS, &due_ns), 1);
	pace_take(&pace, 1, 1, 2 * SECOND_NS);
	cr_expect_eq(pace_room(&pace, 1, 2 * SECOND_NS, &due_ns), 0);
	cr_expect_geq(due_ns, 3 * SECOND_NS - 1);
	cr_expect_eq(pace_room(&pace, 1, due_ns, &due_ns), 1);
}

Test(pace, no_rate_is_too_large_or_none)
{
	struct pace pace = { 0 };
	uint64_t due_ns;

	pace_room(&pace, UINT64_MAX, SECOND_NS, &due_ns);
	cr_expect_gt(pace_room(&pace, UINT64_MAX, 2 * SECOND_NS, &due_ns), 0);
	pace_take(&pace, UINT64_MAX, UINT32_MAX, 2 * SECOND_NS);
	cr_expect_eq(pace_room(&pace, 0, SECOND_NS, &due_ns), 0);
}
