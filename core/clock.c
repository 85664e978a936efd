/* SPDX-License-Identifier: MIT */
#include "core/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	/* Cannot fail: both clocks exist since Linux 2.6.32. */
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_coarse_ns(void)
{
	return read_ns(CLOCK_MONOTONIC_COARSE);
}
