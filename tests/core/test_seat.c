/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/seat.h"

static struct seat_table table;
static uint32_t dead_pid;

static bool is_alive(struct seat_owner owner)
{
	return owner.pid != dead_pid;
}

static seat_t take(uint32_t pid, uint32_t start)
{
	return seat_take(&table, (struct seat_owner){ pid, start }, is_alive);
}

Test(seat, a_process_has_its_seat_until_it_leaves)
{
	seat_t first = take(100, 5), second = take(101, 5);

	cr_assert(first && second && first != second);
	cr_expect(seat_is_taken(&table, first));
	seat_leave(&table, first);
	cr_expect_not(seat_is_taken(&table, first));
	cr_expect(seat_is_taken(&table, second));
}

Test(seat, the_next_holder_is_another_generation)
{
	seat_t first = take(100, 5);
	seat_t second;

	seat_leave(&table, first);
	second = take(101, 5);
	cr_expect_neq(first, second);
	cr_expect_not(seat_is_taken(&table, first));
	seat_leave(&table, first);
	cr_expect(seat_is_taken(&table, second), "an old holder cannot give it up");
}

Test(seat, exec_drops_what_the_process_held_before)
{
	seat_t before = take(100, 5), other = take(101, 5), after;

	cr_expect(seat_is_known(&table, 100));
	seat_drop(&table, (struct seat_owner){ 100, 5 });
	cr_expect_not(seat_is_known(&table, 100));
	after = take(100, 5);
	cr_expect_not(seat_is_taken(&table, before));
	cr_expect(seat_is_taken(&table, after));
	cr_expect(seat_is_taken(&table, other));
}

Test(seat, threads_that_come_at_once_void_nothing_of_each_other)
{
	seat_t first = take(100, 5), second = take(100, 5);

	cr_expect(seat_is_taken(&table, first));
	cr_expect(seat_is_taken(&table, second));
}

Test(seat, a_reused_pid_is_another_process)
{
	seat_t first = take(100, 5);

	take(100, 6);
	cr_expect(seat_is_taken(&table, first));
}

Test(seat, the_seat_of_a_dead_process_is_free_once_asked)
{
	seat_t seat = take(100, 5);

	cr_expect(seat_is_held(&table, seat, is_alive));
	dead_pid = 100;
	cr_expect(seat_is_taken(&table, seat));
	cr_expect_not(seat_is_held(&table, seat, is_alive));
	cr_expect_not(seat_is_taken(&table, seat));
}

Test(seat, a_full_table_gives_the_dead_ones_away)
{
	for (uint32_t i = 0; i < SEAT_COUNT; i++)
		cr_assert(take(1000 + i, 5));
	cr_expect_eq(take(5000, 5), 0);
	dead_pid = 1007;
	cr_expect(take(5000, 5));
	cr_expect_eq(take(5001, 5), 0);
}

Test(seat, any_bytes_are_a_table)
{
	memset(&table, 0xff, sizeof(table));
	for (uint32_t seat = 0; seat < 1u << 20; seat += 977) {
		seat_is_taken(&table, seat);
		seat_is_held(&table, ~seat, is_alive);
		seat_leave(&table, seat);
	}
	cr_expect_eq(take(0, 5), 0);
}
