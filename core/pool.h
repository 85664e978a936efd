/* SPDX-License-Identifier: MIT */
/*
 * Does a pool of threads take one more piece of work, and who does it? The rules of Hystrix and of
 * the ThreadPoolExecutor below it. Pure.
 *
 * Java starts threads up to `core` even while others are idle; here an idle one is taken first.
 * That admits exactly the same work: what is refused depends on who is busy, and on the queue.
 */
#ifndef SHUNT_CORE_POOL_H
#define SHUNT_CORE_POOL_H

#include <stdint.h>

struct pool_shape {
	uint32_t core;
	uint32_t max;          /* less than `core` is `core` */
	uint32_t queue;        /* 0: none; work is handed over, or refused */
	uint32_t queue_reject; /* with a queue: work that waits, from which on more is refused */
};

struct pool_load {
	uint32_t threads;
	uint32_t idle;   /* of them, and nothing waits for them */
	uint32_t queued; /* work that waits for a thread */
};

enum pool_answer {
	POOL_REJECTS,
	POOL_HANDS_OVER, /* an idle thread takes it */
	POOL_STARTS,     /* a new one does */
	POOL_QUEUES
};

/* `queue_reject` is asked first, so that one at or below `queue` means that the pool never grows
 * beyond `core`. */
enum pool_answer pool_admit(struct pool_shape shape, struct pool_load load);

#endif
