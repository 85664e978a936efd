/* SPDX-License-Identifier: MIT */
/* The only place that reads the time. Async-signal-safe; no system call where the vDSO works. */
#ifndef SHUNT_CORE_CLOCK_H
#define SHUNT_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_SECOND_NS 1000000000ull

/* Reads the clocks by `source` from now on; NULL: by clock_gettime() as the loader bound it. That
 * may be another preload's, whose time is made up; processes share times, and so must share the
 * clock. */
void clock_use(int (*source)(clockid_t clock, struct timespec *ret));

/* A program may forbid itself the processor's time stamp counter (PR_SET_TSC, strict seccomp),
 * which the precise clock reads: from now on clock_now_ns() is as clock_coarse_ns(). */
void clock_avoid_counter(bool avoid);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);

/* CLOCK_MONOTONIC_COARSE in nanoseconds: up to a kernel tick (1 to 10 ms) behind clock_now_ns(),
 * never ahead of it, and three times cheaper. For "how long was nothing sent", not for order. */
uint64_t clock_coarse_ns(void);

/* CLOCK_REALTIME in whole seconds: for people to read, nothing is decided by it. */
uint64_t clock_unix_seconds(void);

/* later - earlier, or 0 where the coarse clock makes it look negative. */
static inline uint64_t clock_elapsed_ns(uint64_t earlier_ns, uint64_t later_ns)
{
	return later_ns > earlier_ns ? later_ns - earlier_ns : 0;
}

/* A duration as system calls take it. */
static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / CLOCK_SECOND_NS),
		.tv_nsec = (long)(ns % CLOCK_SECOND_NS) };
}

#endif
