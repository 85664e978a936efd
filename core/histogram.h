/* SPDX-License-Identifier: MIT */
/*
 * Latencies since the cell was made, four buckets to an octave of microseconds (an error below
 * 12.5 %). Shared memory: lock-free, allocates nothing, async-signal-safe, counters saturate.
 */
#ifndef SHUNT_CORE_HISTOGRAM_H
#define SHUNT_CORE_HISTOGRAM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 112

struct histogram {
	_Atomic uint64_t sum_us; /* may lack what racing writers lost; the counts bound the loss */
	_Atomic uint64_t max_us;
	_Atomic uint32_t counts[HISTOGRAM_BUCKETS];
};

static_assert(sizeof(struct histogram) == 464, "histogram layout is shared: bump SEGMENT_VERSION");

/* Milliseconds, with fractions. All 0 when nothing was recorded. Mean and max are exact where
 * writers did not race; the mean is never outside what the buckets allow. */
struct histogram_summary {
	double mean_ms, p50_ms, p90_ms, p99_ms, p99_5_ms, max_ms;
};

void histogram_record(struct histogram *histogram, uint64_t duration_ns);

struct histogram_summary histogram_summarize(const struct histogram *histogram);

#endif
