/* SPDX-License-Identifier: MIT */
#include "core/meter.h"

#include <criterion/criterion.h>

#define MS  UINT64_C(1000000)
#define NOW (UINT64_C(1000000000) * MS)

static struct cell cell;
static struct settings settings;

static void set_up(void)
{
	settings = settings_default;
	settings.volume = 20;
	settings.errors_ratio = RATIO_ONE / 2;
}

TestSuite(meter, .init = set_up);

static void record(int n, bool is_error, uint64_t duration_ns)
{
	for (int i = 0; i < n; i++)
		meter_record(&cell, &settings, 3, is_error, duration_ns, NOW);
}

static bool trips(void)
{
	return meter_trips(&cell, &settings, 3, NOW);
}

Test(meter, exactly_half_of_exactly_the_volume_trips)
{
	record(10, false, 0);
	record(9, true, 0);
	cr_assert_not(trips());
	record(1, true, 0);
	cr_assert(trips());
}

Test(meter, a_hair_below_the_share_does_not_trip)
{
	settings.volume = 1;
	record(51, false, 0);
	record(49, true, 0);
	cr_assert_not(trips());
}

Test(meter, fractions_of_a_percent_are_exact)
{
	settings.volume = 1;
	settings.errors_ratio = RATIO_ONE / 1000;
	record(1000, false, 0);
	record(1, true, 0);
	cr_assert_not(trips());
	settings.errors_ratio = 999;
	cr_assert(trips());
}

Test(meter, a_share_of_nothing_trips_on_any_traffic_but_not_on_none)
{
	settings.errors_ratio = 0;
	settings.volume = 0;
	cr_assert_not(trips());
	record(1, false, 0);
	cr_assert(trips());
}

Test(meter, the_largest_sums_do_not_overflow)
{
	settings.window = (struct window_shape){.span_ns = 64000 * MS, .buckets = 64};
	settings.errors_ratio = RATIO_ONE;
	for (uint64_t i = 0; i < 64; i++)
		atomic_store_explicit(&cell.outcomes.words[i],
				(UINT64_C(3) << 8 | i) << 42 | UINT64_C(0x3ffffffffff),
				memory_order_relaxed);
	atomic_store_explicit(&cell.outcomes.last, UINT64_C(63) << 6 | 63, memory_order_relaxed);
	cr_assert_eq(window_sum(&cell.outcomes, &settings.window, 3, 63500 * MS).errors,
			UINT64_C(64) * 0x1fffff);
	cr_assert(meter_trips(&cell, &settings, 3, 63500 * MS));
}

Test(meter, only_a_success_ends_a_row)
{
	settings.consecutive = 3;
	settings.volume = 1000;
	record(2, true, 0);
	record(1, false, 0);
	record(2, true, 0);
	cr_assert_not(trips());
	record(1, true, 0);
	cr_assert(trips());
	cr_assert_not(meter_trips(&cell, &settings, 4, NOW));
}

Test(meter, a_row_does_not_wrap)
{
	settings.consecutive = UINT32_MAX;
	settings.volume = 1000;
	atomic_store_explicit(
			&cell.consecutive, UINT64_C(3) << 32 | UINT32_MAX, memory_order_relaxed);
	record(1, true, 0);
	cr_assert(trips());
}

Test(meter, slow_means_strictly_longer)
{
	settings.slow_ns = 5 * MS;
	cr_assert_not(meter_is_slow(&settings, 5 * MS));
	cr_assert(meter_is_slow(&settings, 5 * MS + 1));
	settings.slow_ns = 0;
	cr_assert_not(meter_is_slow(&settings, UINT64_MAX));
}

Test(meter, slow_successes_trip_by_their_own_share)
{
	settings.slow_ns = 5 * MS;
	settings.slow_ratio = RATIO_ONE;
	record(19, false, 6 * MS);
	cr_assert_not(trips());
	record(1, false, 6 * MS);
	cr_assert(trips());
	record(1, false, 5 * MS);
	cr_assert_not(trips());
}
