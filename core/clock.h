/* SPDX-License-Identifier: MIT */
/* The only place that reads the time. Async-signal-safe; no system call where the vDSO works. */
#ifndef SHUNT_CORE_CLOCK_H
#define SHUNT_CORE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

/* CLOCK_MONOTONIC_COARSE in nanoseconds: up to a kernel tick (1 to 10 ms) behind clock_now_ns(),
 * never ahead of it, and three times cheaper. For "how long was nothing sent", not for order. */
uint64_t clock_coarse_ns(void);

/* later - earlier, or 0 where the coarse clock makes it look negative. */
static inline uint64_t clock_elapsed_ns(uint64_t earlier_ns, uint64_t later_ns)
{
	return later_ns > earlier_ns ? later_ns - earlier_ns : 0;
}

#endif
