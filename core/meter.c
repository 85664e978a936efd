/* SPDX-License-Identifier: MIT */
#include "core/meter.h"

/* One more failure in a row, or none. A new epoch starts from 0. */
static void count_row(struct cell *cell, uint32_t epoch, bool is_error)
{
	uint64_t seen = atomic_load_explicit(&cell->consecutive, memory_order_relaxed);
	uint64_t after;

	do {
		uint32_t row = seen >> 32 == epoch ? (uint32_t)seen : 0;

		row = is_error ? row + (row != UINT32_MAX) : 0;
		after = (uint64_t)epoch << 32 | row;
	} while (after != seen &&
			!atomic_compare_exchange_weak_explicit(&cell->consecutive, &seen, after,
					memory_order_relaxed, memory_order_relaxed));
}

void meter_record_rest(struct cell *cell, const struct settings *settings, uint32_t epoch,
		bool is_error, uint64_t duration_ns, uint64_t now_ns)
{
	if (settings->slow_ns != 0)
		window_record(&cell->slow, &settings->window, epoch, now_ns,
				meter_is_slow(settings, duration_ns));
	if (settings->consecutive != 0)
		count_row(cell, epoch, is_error);
}

static uint32_t failures_in_a_row(const struct cell *cell, uint32_t epoch)
{
	uint64_t word = atomic_load_explicit(&cell->consecutive, memory_order_relaxed);

	return word >> 32 == epoch ? (uint32_t)word : 0;
}

static bool share_is_reached(const struct settings *settings, struct window_sum sum, uint32_t ratio)
{
	uint32_t volume = settings->volume, calls = settings->window.calls;

	/* A window of N calls never holds more than N. */
	if (calls != 0 && volume > calls)
		volume = calls;
	return sum.total != 0 && sum.total >= volume && sum.errors * RATIO_ONE >= ratio * sum.total;
}

bool meter_trips_by_sums(const struct cell *cell, const struct settings *settings, uint32_t epoch,
		uint64_t now_ns)
{
	const struct window_shape *shape = &settings->window;

	if (share_is_reached(settings, window_sum(&cell->outcomes, shape, epoch, now_ns),
			    settings->errors_ratio))
		return true;
	if (settings->consecutive != 0 && failures_in_a_row(cell, epoch) >= settings->consecutive)
		return true;
	return settings->slow_ns != 0 &&
	       share_is_reached(settings, window_sum(&cell->slow, shape, epoch, now_ns),
			       settings->slow_ratio);
}
