/* SPDX-License-Identifier: MIT */
/* Whether readiness may come to be held in this process (shim/hold.h), and what has to be done for
 * it before. Async-signal-safe; errno is kept. */
#ifndef SHUNT_SHIM_EXPECTATION_H
#define SHUNT_SHIM_EXPECTATION_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Something may come to be held in this process: from now on registrations are recorded. What was
 * registered before has to be read from the kernel, and its edges, of which some may be spent by
 * then, are reported anew.
 */
void holds_record(void);

/* And now it may: until then a wait costs a comparison or two, and nothing makes a system call. */
void holds_expect(void);

extern _Atomic bool withheld_is_recorded __attribute__((visibility("hidden")));
extern _Atomic bool withheld_is_expected __attribute__((visibility("hidden")));

static inline bool holds_are_recorded(void)
{
	return __builtin_expect(atomic_load_explicit(&withheld_is_recorded, memory_order_acquire),
			0);
}

static inline bool holds_are_expected(void)
{
	return __builtin_expect(atomic_load_explicit(&withheld_is_expected, memory_order_acquire),
			0);
}

/* May anything more be held now? Not under a seccomp filter or in a vfork child; not where what is
 * held could not be given back while another thread waits: with threads and SHUNT_TIMER=off; and
 * not while there is an epoll set of which something may be missing. Makes system calls. */
bool hold_is_possible(void);

/* Can what is held be given back when it is due, in time for whoever waits? */
bool hold_may_be_given_back(void);

/* The process was forked: what it takes out of its epoll sets another one may be waiting for, and
 * goes back in time whether this one waits or not. */
void holds_share(void);
bool holds_are_shared(void);

#endif
