/* SPDX-License-Identifier: MIT */
#include "core/histogram.h"

#include <stdbool.h>

/* Far enough below the end that no number of racing writers gets past it. */
#define COUNT_FULL (UINT32_MAX - 65536)

/* 0 to 3 us have a bucket each; from there on the octave and its two next bits are the bucket. */
static unsigned int bucket_of(uint64_t us)
{
	unsigned int octave, bucket;

	if (us < 4)
		return (unsigned int)us;
	octave = 63 - (unsigned int)__builtin_clzll(us);
	bucket = (octave - 1) * 4 + (us >> (octave - 2) & 3);
	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* Its smallest and its largest value. */
static uint64_t bucket_low_us(unsigned int bucket)
{
	if (bucket < 8)
		return bucket;
	return (uint64_t)(4 + bucket % 4) << (bucket / 4 - 1);
}

static uint64_t bucket_high_us(unsigned int bucket)
{
	return bucket_low_us(bucket + 1) - 1;
}

/* At most 12.5 % away from anything in the bucket. */
static double bucket_middle_us(unsigned int bucket)
{
	return (double)(bucket_low_us(bucket) + bucket_high_us(bucket)) / 2;
}

void histogram_record(struct histogram *histogram, uint64_t duration_ns)
{
	uint64_t us = duration_ns / 1000;
	_Atomic uint32_t *count = &histogram->counts[bucket_of(us)];
	uint64_t max_us = atomic_load_explicit(&histogram->max_us, memory_order_relaxed);
	/* Not one locked step: it would cost every call as much as the count, for a mean. */
	uint64_t sum_us = atomic_load_explicit(&histogram->sum_us, memory_order_relaxed);

	atomic_store_explicit(&histogram->sum_us, sum_us + us, memory_order_relaxed);
	while (us > max_us && !atomic_compare_exchange_weak_explicit(&histogram->max_us, &max_us,
					      us, memory_order_relaxed, memory_order_relaxed))
		;
	if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) >= COUNT_FULL)
		atomic_store_explicit(count, COUNT_FULL, memory_order_relaxed);
}

struct counted {
	uint32_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	double max_us;
};

/* The smallest value that `share` of all calls did not exceed. */
static double quantile_ms(const struct counted *counted, double share)
{
	double rank = share * (double)counted->total;
	uint64_t below = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		below += counted->counts[i];
		if (counted->counts[i] != 0 && (double)below >= rank) {
			double us = bucket_middle_us(i);

			return (us < counted->max_us ? us : counted->max_us) / 1000;
		}
	}
	/* The last bucket has no upper end. */
	return counted->max_us / 1000;
}

/* The mean as summed up, but not outside of what the counts allow. */
static double mean_us(const struct counted *counted, double sum_us)
{
	double low_us = 0, high_us = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		bool is_last = i == HISTOGRAM_BUCKETS - 1;
		double count = counted->counts[i];

		low_us += count * (double)bucket_low_us(i);
		high_us += count * (is_last ? counted->max_us : (double)bucket_high_us(i));
	}
	if (sum_us > high_us)
		sum_us = high_us;
	if (sum_us < low_us)
		sum_us = low_us;
	return sum_us / (double)counted->total;
}

struct histogram_summary histogram_summarize(const struct histogram *histogram)
{
	struct counted counted = { .total = 0 };
	double sum_us;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		counted.counts[i] =
				atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
		counted.total += counted.counts[i];
	}
	if (counted.total == 0)
		return (struct histogram_summary){ .max_ms = 0 };
	counted.max_us = (double)atomic_load_explicit(&histogram->max_us, memory_order_relaxed);
	sum_us = (double)atomic_load_explicit(&histogram->sum_us, memory_order_relaxed);
	return (struct histogram_summary){
		.mean_ms = mean_us(&counted, sum_us) / 1000,
		.p50_ms = quantile_ms(&counted, 0.5),
		.p90_ms = quantile_ms(&counted, 0.9),
		.p99_ms = quantile_ms(&counted, 0.99),
		.p99_5_ms = quantile_ms(&counted, 0.995),
		.max_ms = counted.max_us / 1000,
	};
}
