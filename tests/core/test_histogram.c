/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct histogram histogram;

static void record_us(uint64_t us, int times)
{
	for (int i = 0; i < times; i++)
		histogram_record(&histogram, us * 1000);
}

static void assert_near(double got_ms, double want_ms)
{
	cr_assert(fabs(got_ms - want_ms) <= want_ms * 0.125 + 1e-9, "%f ms is not near %f ms",
			got_ms, want_ms);
}

Test(histogram, nothing_recorded_is_all_zero)
{
	struct histogram_summary summary = histogram_summarize(&histogram);

	cr_assert_eq(summary.mean_ms, 0);
	cr_assert_eq(summary.p50_ms, 0);
	cr_assert_eq(summary.p99_5_ms, 0);
	cr_assert_eq(summary.max_ms, 0);
}

Test(histogram, mean_and_maximum_are_exact)
{
	struct histogram_summary summary;

	record_us(1000, 3);
	record_us(5000, 1);
	summary = histogram_summarize(&histogram);
	cr_assert_float_eq(summary.mean_ms, 2.0, 1e-9);
	cr_assert_float_eq(summary.max_ms, 5.0, 1e-9);
}

Test(histogram, one_value_is_within_an_eighth_at_every_size)
{
	for (uint64_t us = 1; us < UINT64_C(7) << 26; us = us * 17 / 16 + 1) {
		histogram = (struct histogram){ 0 };
		record_us(us, 1);
		/* A far larger one, so that the maximum does not help. */
		record_us(UINT64_C(1) << 40, 1);
		assert_near(histogram_summarize(&histogram).p50_ms, (double)us / 1000);
	}
}

Test(histogram, percentiles_of_a_ladder)
{
	struct histogram_summary summary;

	for (uint64_t us = 1; us <= 10000; us++)
		record_us(us * 10, 1);
	summary = histogram_summarize(&histogram);
	assert_near(summary.p50_ms, 50);
	assert_near(summary.p90_ms, 90);
	assert_near(summary.p99_ms, 99);
	assert_near(summary.p99_5_ms, 99.5);
	cr_assert_leq(summary.p99_5_ms, summary.max_ms);
}

Test(histogram, a_rare_slow_call_shows_only_at_the_end)
{
	struct histogram_summary summary;

	record_us(100, 995);
	record_us(1000000, 5);
	summary = histogram_summarize(&histogram);
	assert_near(summary.p99_ms, 0.1);
	assert_near(summary.p99_5_ms, 0.1);
	cr_assert_float_eq(summary.max_ms, 1000, 1e-9);
}

Test(histogram, the_longest_durations_fit)
{
	histogram_record(&histogram, UINT64_MAX);
	cr_assert_float_eq(histogram_summarize(&histogram).p50_ms,
			(double)(UINT64_MAX / 1000) / 1000, 1);
}

Test(histogram, a_lost_sum_moves_the_mean_no_further_than_its_bucket)
{
	record_us(1000, 100);
	record_us(3000, 100);
	atomic_store_explicit(&histogram.sum_us, 7, memory_order_relaxed);
	cr_assert_float_eq(histogram_summarize(&histogram).mean_ms, (0.896 + 2.56) / 2, 1e-9);
	atomic_store_explicit(&histogram.sum_us, UINT64_MAX, memory_order_relaxed);
	cr_assert_float_eq(histogram_summarize(&histogram).mean_ms, (1.023 + 3.071) / 2, 1e-9);
}

Test(histogram, a_full_counter_does_not_wrap)
{
	atomic_store_explicit(&histogram.counts[2], UINT32_MAX - 70000, memory_order_relaxed);
	record_us(2, 200000);
	cr_assert_geq(atomic_load_explicit(&histogram.counts[2], memory_order_relaxed),
			UINT32_MAX - 70000);
}

Test(histogram, any_bytes_summarize_to_something)
{
	for (int byte = 0; byte < 256; byte++) {
		struct histogram_summary summary;

		memset((void *)&histogram, byte, sizeof(histogram));
		summary = histogram_summarize(&histogram);
		cr_assert(isfinite(summary.mean_ms) && isfinite(summary.p99_5_ms));
		cr_assert(summary.p50_ms <= summary.p90_ms && summary.p99_ms <= summary.p99_5_ms);
		cr_assert_leq(summary.p99_5_ms, summary.max_ms);
		histogram_record(&histogram, 1000);
	}
}
