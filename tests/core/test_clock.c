/* SPDX-License-Identifier: MIT */
#include "core/clock.h"

#include <criterion/criterion.h>
#include <time.h>

Test(clock, it_is_the_monotonic_clock)
{
	struct timespec before, after;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &before);
	now_ns = clock_now_ns();
	clock_gettime(CLOCK_MONOTONIC, &after);
	cr_assert_geq(now_ns, (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec);
	cr_assert_leq(now_ns, (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec);
}

Test(clock, without_the_counter_it_is_the_coarse_clock)
{
	clock_avoid_counter(true);
	for (int i = 0; i < 1000; i++) {
		uint64_t before_ns = clock_coarse_ns(), now_ns = clock_now_ns();

		cr_assert_geq(now_ns, before_ns);
		cr_assert_leq(now_ns, clock_coarse_ns());
	}
	clock_avoid_counter(false);
}

Test(clock, it_never_goes_back)
{
	uint64_t last_ns = clock_now_ns();

	for (int i = 0; i < 100000; i++) {
		uint64_t now_ns = clock_now_ns();

		cr_assert_geq(now_ns, last_ns);
		last_ns = now_ns;
	}
}

Test(clock, the_coarse_clock_is_never_ahead)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t coarse_ns = clock_coarse_ns();

		cr_assert_leq(coarse_ns, clock_now_ns());
	}
}

Test(clock, the_coarse_clock_follows_the_other)
{
	uint64_t start_ns = clock_now_ns();

	/* However long it takes: it must get past a moment that has passed. */
	while (clock_coarse_ns() < start_ns)
		cr_assert_lt(clock_now_ns(), start_ns + UINT64_C(100000000000));
}

Test(clock, a_negative_difference_is_no_time)
{
	cr_assert_eq(clock_elapsed_ns(5, 9), 4);
	cr_assert_eq(clock_elapsed_ns(9, 9), 0);
	cr_assert_eq(clock_elapsed_ns(9, 5), 0);
}

static int read_made_up(clockid_t clock, struct timespec *ret)
{
	*ret = (struct timespec){ .tv_sec = clock == CLOCK_REALTIME_COARSE ? 7 : 5, .tv_nsec = 3 };
	return 0;
}

Test(clock, it_is_read_by_whom_it_was_told)
{
	clock_use(read_made_up);
	cr_assert_eq(clock_now_ns(), 5000000003);
	cr_assert_eq(clock_coarse_ns(), 5000000003);
	cr_assert_eq(clock_unix_seconds(), 7);
	clock_use(NULL);
	cr_assert_neq(clock_now_ns(), 5000000003);
	cr_assert_gt(clock_unix_seconds(), 1700000000);
}
