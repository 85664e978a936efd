/* SPDX-License-Identifier: MIT */
#include "core/window.h"

#include <criterion/criterion.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define START (UINT64_C(1000000) * SECOND)

static const struct window_shape ten_seconds = { .span_ns = 10 * SECOND, .buckets = 10 };
static struct window window;

static void record_many(const struct window_shape *shape, uint32_t epoch, uint64_t now_ns, int n,
		bool error)
{
	for (int i = 0; i < n; i++)
		window_record(&window, shape, epoch, now_ns, error);
}

static void assert_sum(const struct window_shape *shape, uint32_t epoch, uint64_t now_ns,
		uint64_t total, uint64_t errors)
{
	struct window_sum sum = window_sum(&window, shape, epoch, now_ns);

	cr_assert_eq(sum.total, total, "total %llu, not %llu", (unsigned long long)sum.total,
			(unsigned long long)total);
	cr_assert_eq(sum.errors, errors, "errors %llu, not %llu", (unsigned long long)sum.errors,
			(unsigned long long)errors);
}

Test(window, it_counts_the_current_bucket_and_those_before_it)
{
	record_many(&ten_seconds, 3, START, 2, true);
	record_many(&ten_seconds, 3, START + 9 * SECOND, 3, false);
	assert_sum(&ten_seconds, 3, START + 10 * SECOND - 1, 5, 2);
	assert_sum(&ten_seconds, 3, START + 10 * SECOND, 3, 0);
	assert_sum(&ten_seconds, 3, START + 19 * SECOND - 1, 3, 0);
	assert_sum(&ten_seconds, 3, START + 19 * SECOND, 0, 0);
}

Test(window, a_bucket_ends_at_its_edge_to_the_nanosecond)
{
	window_record(&window, &ten_seconds, 0, START + SECOND - 1, true);
	window_record(&window, &ten_seconds, 0, START + SECOND, false);
	assert_sum(&ten_seconds, 0, START + 10 * SECOND - 1, 2, 1);
	assert_sum(&ten_seconds, 0, START + 10 * SECOND, 1, 0);
}

Test(window, buckets_that_do_not_divide_the_span_tile_it)
{
	const struct window_shape shape = { .span_ns = 1000, .buckets = 3 };
	uint64_t start_ns = 999000;

	/* Edges at 0, 333 1/3, 666 2/3 and 1000. */
	window_record(&window, &shape, 0, start_ns + 333, true);
	assert_sum(&shape, 0, start_ns + 999, 1, 1);
	assert_sum(&shape, 0, start_ns + 1000, 0, 0);
	window_record(&window, &shape, 0, start_ns + 1334, true);
	assert_sum(&shape, 0, start_ns + 2333, 1, 1);
	assert_sum(&shape, 0, start_ns + 2334, 0, 0);
}

Test(window, another_epoch_is_not_seen)
{
	record_many(&ten_seconds, 7, START, 5, true);
	assert_sum(&ten_seconds, 8, START, 0, 0);
	record_many(&ten_seconds, 8, START, 1, false);
	assert_sum(&ten_seconds, 8, START, 1, 0);
}

Test(window, an_older_epoch_takes_nothing_from_a_newer_one)
{
	record_many(&ten_seconds, 8, START, 4, true);
	record_many(&ten_seconds, 7, START, 9, true);
	assert_sum(&ten_seconds, 8, START, 4, 4);
	/* Epochs are serial numbers: 0 follows the last one. */
	record_many(&ten_seconds, 16383, START + SECOND, 2, true);
	record_many(&ten_seconds, 0, START + SECOND, 1, true);
	record_many(&ten_seconds, 16383, START + SECOND, 2, true);
	assert_sum(&ten_seconds, 0, START + SECOND, 1, 1);
}

Test(window, a_full_bucket_freezes_and_keeps_its_share)
{
	const uint64_t full = (1 << 21) - 1;

	record_many(&ten_seconds, 0, START, 1 << 20, true);
	record_many(&ten_seconds, 0, START, 1 << 21, false);
	assert_sum(&ten_seconds, 0, START, full, 1 << 20);
	record_many(&ten_seconds, 0, START, 10, true);
	assert_sum(&ten_seconds, 0, START, full, 1 << 20);
	record_many(&ten_seconds, 0, START + SECOND, 1, true);
	assert_sum(&ten_seconds, 0, START + SECOND, full + 1, (1 << 20) + 1);
}

Test(window, a_straggler_counts_in_its_own_bucket)
{
	record_many(&ten_seconds, 0, START + 9 * SECOND, 1, false);
	record_many(&ten_seconds, 0, START, 1, true);
	assert_sum(&ten_seconds, 0, START + 9 * SECOND, 2, 1);
	assert_sum(&ten_seconds, 0, START + 10 * SECOND, 1, 0);
}

Test(window, a_whole_window_late_is_not_counted)
{
	record_many(&ten_seconds, 0, START + 10 * SECOND, 1, false);
	record_many(&ten_seconds, 0, START, 1, true);
	assert_sum(&ten_seconds, 0, START + 10 * SECOND, 1, 0);
}

Test(window, a_reader_slightly_behind_sees_the_newest_bucket)
{
	record_many(&ten_seconds, 0, START, 3, true);
	assert_sum(&ten_seconds, 0, START - 1, 3, 3);
}

Test(window, no_gap_brings_back_what_it_had_left_behind)
{
	/* Every distance at which eight bits of tick come round again, and those beside it. */
	for (uint64_t gap = 10; gap < 3000; gap++) {
		window = (struct window){ 0 };
		record_many(&ten_seconds, 1, START, 5, true);
		assert_sum(&ten_seconds, 1, START + gap * SECOND, 0, 0);
		record_many(&ten_seconds, 1, START + gap * SECOND, 1, false);
		assert_sum(&ten_seconds, 1, START + gap * SECOND, 1, 0);
	}
}

Test(window, a_bucket_that_traffic_always_misses_does_not_come_back)
{
	uint64_t now_ns = START;

	record_many(&ten_seconds, 1, now_ns, 5, true);
	for (int round = 0; round < 300; round++) {
		for (int bucket = 1; bucket < 10; bucket++) {
			now_ns = START + (uint64_t)(round * 10 + bucket) * SECOND;
			window_record(&window, &ten_seconds, 1, now_ns, false);
		}
		assert_sum(&ten_seconds, 1, now_ns, 9 + (round == 0 ? 5 : 0), round == 0 ? 5 : 0);
	}
}

Test(window, a_file_from_before_a_reboot_heals)
{
	record_many(&ten_seconds, 0, START, 5, true);
	/* Up for half a minute only: too little to tell from a skewed clock. */
	record_many(&ten_seconds, 0, START - 30 * SECOND, 1, true);
	assert_sum(&ten_seconds, 0, START, 5, 5);
	for (uint64_t up_s = 0; up_s < 25; up_s++) {
		window_record(&window, &ten_seconds, 0, up_s * SECOND, true);
		assert_sum(&ten_seconds, 0, up_s * SECOND, up_s < 10 ? up_s + 1 : 10,
				up_s < 10 ? up_s + 1 : 10);
	}
}

Test(window, it_says_when_time_alone_may_have_changed_it)
{
	const struct window_shape calls = { .calls = 10 };

	window_record(&window, &ten_seconds, 0, START + 5, true);
	cr_assert_not(window_has_moved(&window, &ten_seconds, START));
	cr_assert_not(window_has_moved(&window, &ten_seconds, START + SECOND - 1));
	cr_assert(window_has_moved(&window, &ten_seconds, START + SECOND));
	cr_assert(window_has_moved(&window, &ten_seconds, START + UINT64_C(100000) * SECOND));
	cr_assert_not(window_has_moved(&window, &calls, START + UINT64_C(100000) * SECOND));
}

Test(window, the_largest_and_the_smallest_shapes_work)
{
	const struct window_shape shapes[] = {
		{ .span_ns = 86400 * SECOND, .buckets = 64 },
		{ .span_ns = 64000000, .buckets = 64 },
		{ .span_ns = SECOND, .buckets = 1 },
		{ .span_ns = 1, .buckets = 1 },
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct window_shape *shape = &shapes[i];
		uint64_t start_ns = START / shape->span_ns * shape->span_ns;

		window = (struct window){ 0 };
		window_record(&window, shape, 0, start_ns, true);
		assert_sum(shape, 0, start_ns + shape->span_ns - 1, 1, 1);
		assert_sum(shape, 0, start_ns + shape->span_ns, 0, 0);
	}
}

Test(window, the_last_calls_are_exact_at_every_size)
{
	for (uint32_t calls = 1; calls <= WINDOW_MAX_CALLS; calls += calls < 40 ? 1 : 97) {
		const struct window_shape shape = { .calls = calls };
		bool history[3000];

		window = (struct window){ 0 };
		for (uint32_t i = 0; i < 3000; i++) {
			uint64_t errors = 0, total = i + 1 < calls ? i + 1 : calls;

			history[i] = i * 2654435761u >> 30 == 0;
			window_record(&window, &shape, 5, 0, history[i]);
			for (uint64_t back = 0; back < total; back++)
				errors += history[i - back];
			assert_sum(&shape, 5, 0, total, errors);
		}
	}
}

Test(window, a_new_epoch_starts_a_count_window_anew)
{
	const struct window_shape shape = { .calls = 20 };

	record_many(&shape, 1, 0, 25, true);
	record_many(&shape, 2, 0, 3, false);
	assert_sum(&shape, 2, 0, 3, 0);
	record_many(&shape, 1, 0, 2, true);
	assert_sum(&shape, 2, 0, 3, 0);
}

Test(window, a_call_whose_process_died_before_writing_is_missing_and_no_more)
{
	const struct window_shape shape = { .calls = 10 };

	record_many(&shape, 1, 0, 10, true);
	atomic_fetch_add_explicit(&window.last, 1, memory_order_relaxed);
	assert_sum(&shape, 1, 0, 9, 9);
	record_many(&shape, 1, 0, 10, false);
	assert_sum(&shape, 1, 0, 10, 0);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fill_with_garbage(uint64_t *state)
{
	uint64_t words[sizeof(window) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = next_random(state) >> next_random(state) % 64;
	memcpy((void *)&window, words, sizeof(words));
}

Test(window, it_recovers_from_any_bytes)
{
	const struct window_shape calls = { .calls = 100 };
	uint64_t state = 88172645463325252u;

	for (int round = 0; round < 20000; round++) {
		struct window_sum sum;

		fill_with_garbage(&state);
		sum = window_sum(&window, &ten_seconds, state & 16383, START);
		cr_assert_leq(sum.errors, sum.total);
		/* A garbage tick may look less than a minute ahead: two more minutes settle it. */
		record_many(&ten_seconds, 9, START, 1, true);
		record_many(&ten_seconds, 9, START + 120 * SECOND, 1, true);
		record_many(&ten_seconds, 9, START + 240 * SECOND, 1, true);
		assert_sum(&ten_seconds, 9, START + 240 * SECOND, 1, 1);

		fill_with_garbage(&state);
		sum = window_sum(&window, &calls, state & 16383, START);
		cr_assert_leq(sum.errors, sum.total);
		cr_assert_leq(sum.total, 100);
	}
}

Test(window, a_count_window_recovers_within_a_few_laps)
{
	const struct window_shape calls = { .calls = 100 };
	uint64_t state = 123456789;

	for (int round = 0; round < 50; round++) {
		fill_with_garbage(&state);
		record_many(&calls, 9, START, 6 * WINDOW_WORDS * 16, true);
		assert_sum(&calls, 9, START, 100, 100);
	}
}

Test(window, a_shape_from_garbage_harms_nobody)
{
	uint64_t state = 42;

	for (int round = 0; round < 20000; round++) {
		struct window_shape shape = {
			.span_ns = next_random(&state) >> next_random(&state) % 64,
			.buckets = (uint32_t)next_random(&state),
			.calls = round % 2 == 0 ? 0 : (uint32_t)next_random(&state),
		};
		uint64_t now_ns = next_random(&state) >> next_random(&state) % 64;

		if (round % 7 == 0)
			shape.span_ns = shape.buckets = 0;
		fill_with_garbage(&state);
		window_record(&window, &shape, (uint32_t)state, now_ns, true);
		cr_assert_leq(window_sum(&window, &shape, (uint32_t)state, now_ns).errors,
				window_sum(&window, &shape, (uint32_t)state, now_ns).total);
		window_has_moved(&window, &shape, now_ns);
	}
}
