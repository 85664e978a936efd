/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own in somebody else's process (docs/BEHAVIOUR.md section 5). They block
 * all signals, have small stacks and no descriptor, and are not started under a seccomp filter. A
 * thread sleeps on a bell, looks at thread_must_end() at least each THREAD_ROUND_NS, and returns
 * when told so.
 */
#ifndef SHUNT_SHIM_THREAD_H
#define SHUNT_SHIM_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREAD_ROUND_NS 100000000ull

struct thread_plan {
	void (*run)(void *argument);
	void *argument;
	_Atomic uint32_t *bell; /* of static memory */
	const char *name;	/* at most 15 characters, static */
	size_t stack_bytes;	/* beside what every thread needs */
};

/* 0: it runs, or will. EBUSY: not now (held, or a filter was seen). Otherwise why none could be
 * made. Calls pthread_create(), which a signal handler must not do. errno is kept. */
int thread_start(const struct thread_plan *plan);

/* Threads of this process, as the kernel counts them, asked without a descriptor; 0 where there is
 * no /proc. */
long thread_alive_count(void);

/* For the thread: held, a filter was seen, or no thread but ours is alive, as far as can
 * be told. Makes system calls. */
bool thread_must_end(void);

/* A bell's sleepers wake, all of them, and see it changed. */
void thread_ring(_Atomic uint32_t *bell);

/* Sleeps until the bell is rung, was rung since `seen` was read, or the time is over; for
 * THREAD_ROUND_NS at most. */
void thread_wait(_Atomic uint32_t *bell, uint32_t seen, uint64_t duration_ns);

/* Ends all our threads, waits until the kernel has let go of them (for a second at most, by the
 * clock: one may be inside a resolver), and lets none start until as many releases as holds: around
 * unshare(), setns() and the setting of a seccomp filter. No system call where there never was one.
 * errno is kept. */
void thread_hold(void);
void thread_release(void);
bool thread_is_held(void);

/* In a forked child: there are none. */
void thread_forget(void);

/* A lock of ours, held without a signal handler on this thread, nor a cancellation, so that nobody
 * leaves with it. Where no call of our own may be made it is only tried. False: not locked. */
bool thread_lock(pthread_mutex_t *mutex, uint64_t *ret_signals);
void thread_unlock(pthread_mutex_t *mutex, uint64_t signals);

/* No handler runs on this thread until the signals are as before: none can leave by longjmp what is
 * begun now, and no cancellation comes. Returns what was blocked before. */
uint64_t thread_block_signals(void);
bool thread_blocks_signals(void); /* any, now? */
void thread_restore_signals(uint64_t before);

#endif
