/* SPDX-License-Identifier: MIT */
/*
 * Lookups on threads of our own, so that their callers need not wait for libc: a pool for each rule
 * (core/pool.h). Nothing exists before the first need; a thread that was idle for a few seconds
 * ends. A worker has a copy of the question and writes to memory of its own, which it frees where
 * nobody waits any more: a caller may leave by longjmp or cancellation at any time.
 *
 * Locks and allocates, as the resolver does. Call only while runtime_is_judging().
 */
#ifndef SHUNT_SHIM_RESOLVER_H
#define SHUNT_SHIM_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"
#include "shim/question.h"
#include "shim/request.h"

enum resolver_end {
	RESOLVER_ANSWERED,
	RESOLVER_TIMED_OUT,
	RESOLVER_REJECTED,   /* no thread is free, and the queue is full */
	RESOLVER_UNAVAILABLE /* no other thread may or can ask this: the caller must, himself */
};

/*
 * Asks, and waits until `deadline_ns`. A cancellation point. *ret_answer is set where answered; for
 * a host its h_error says what the caller's holds before, and `size` is how large the caller's
 * buffer is.
 */
enum resolver_end resolver_ask(const struct rule *rule, const struct question *question,
		size_t size, uint64_t deadline_ns, struct request_answer *ret_answer);

/* Nobody will fetch the answer that the calling thread was waiting for. Cheap where there is none.
 */
void resolver_leave(void);

/* A thread of this process has gone to other namespaces: from now on none asks for another. */
void resolver_moved(void);

/* Would the calling thread ask elsewhere than others of this process, or than it did before: has
 * one moved, or has it changed its resolver state? Then no answer but its own is one. Under a
 * filter the latter is not looked at. errno is kept. */
bool resolver_is_elsewhere(void);

/* In a forked child: no thread is there, and nobody waits. */
void resolver_forked(void);

#endif
