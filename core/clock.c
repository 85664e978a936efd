/* SPDX-License-Identifier: MIT */
#include "core/clock.h"

#include <stdatomic.h>

/* Threads of other libraries' constructors may read a clock meanwhile: either will do. */
static int (*_Atomic clock_source)(clockid_t clock, struct timespec *ret) = clock_gettime;

void clock_use(int (*source)(clockid_t clock, struct timespec *ret))
{
	atomic_store_explicit(&clock_source, source ? source : clock_gettime,
			memory_order_relaxed);
}

/* CLOCK_MONOTONIC, or the coarse one where the precise one must not be read. */
static _Atomic clockid_t clock_now = CLOCK_MONOTONIC;

void clock_avoid_counter(bool avoid)
{
	atomic_store_explicit(&clock_now, avoid ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC,
			memory_order_relaxed);
}

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	/* Cannot fail: the clocks exist since Linux 2.6.32. */
	atomic_load_explicit(&clock_source, memory_order_relaxed)(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_ns(atomic_load_explicit(&clock_now, memory_order_relaxed));
}

uint64_t clock_coarse_ns(void)
{
	return read_ns(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_unix_seconds(void)
{
	return read_ns(CLOCK_REALTIME_COARSE) / 1000000000u;
}
