/* SPDX-License-Identifier: MIT */
/*
 * System calls of our own that another thread's seccomp filter might kill for: who sets one forbids
 * them first, and waits for those that have begun. Async-signal-safe.
 */
#ifndef SHUNT_SHIM_OWN_CALL_H
#define SHUNT_SHIM_OWN_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct own_calls {
	_Atomic uint32_t forbidden; /* own_calls_forbid() without own_calls_allow() */
	_Atomic uint32_t calling;   /* threads between begin and end */
};

extern struct own_calls own_calls __attribute__((visibility("hidden")));

/* Around a few of them. False: none may be made, and there is nothing to end. Pairs nest. A wait
 * for somebody else is not counted, or a filter would wait as long: it looks each time before it
 * sleeps. */
bool own_calls_begin(void);
void own_calls_end(void);

/* A filter was seen, or is being set: no call of our own, no thread, no wait. */
static inline bool own_calls_are_forbidden(void)
{
	return atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed);
}

/* A wait for what another thread is about to do, in short sleeps. Zeroed memory: not begun. */
struct own_wait {
	uint64_t until_ns;
	uint32_t steps;
};

/* One sleep. False: a second is over, by the clock, and nothing was slept. Not under a filter. */
bool own_wait_step(struct own_wait *wait);

/* None begins from now on; waits until the last has ended, for a second at most. Allowed again
 * where no filter was set after all. */
void own_calls_forbid(void);
void own_calls_allow(void);

/* In a forked child: only this thread is there. */
void own_calls_forked(void);

#endif
