/* SPDX-License-Identifier: MIT */
/*
 * One question that a thread asks libc for another. Whoever waits sleeps on the request, for as
 * long as he likes, and may go away at any time; the answer is his who sees it done, and otherwise
 * of the thread that asked. Allocates.
 */
#ifndef SHUNT_SHIM_REQUEST_H
#define SHUNT_SHIM_REQUEST_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/question.h"

/* What libc said. */
struct request_answer {
	int result;	       /* of getaddrinfo() or gethostby*_r() */
	int system_error;      /* errno; before, what the caller's was */
	int h_error;	       /* the same */
	struct addrinfo *list; /* for freeaddrinfo() */
	struct hostent *entry; /* or NULL */
	void *memory;	       /* of `entry`, for free() */
};

#define REQUEST_ANY_SIZE SIZE_MAX

struct request {
	_Atomic uint32_t state;
	struct question question; /* a copy */
	struct request_answer answer;
	uint64_t deadline_ns;
	size_t size;	 /* of a host's buffer; REQUEST_ANY_SIZE: as large as the answer */
	bool is_late;	 /* it was not even asked in time */
	bool is_unasked; /* there is nobody to ask it */
	/* Whose line it may stand in. */
	struct request *next;
	struct pool *pool;
	_Alignas(max_align_t) char memory[];
};

/* NULL without memory. */
struct request *request_make(const struct question *question);

/* With its answer. */
void request_free(struct request *request);

/* For the thread that asks: asks, unless it is too late for that. */
void request_ask(struct request *request);

/* For the same thread, last: wakes who waits, or frees the request if nobody does. */
void request_publish(struct request *request);

/* For the caller: until it is done, or late. A cancellation point, as a resolver is. */
void request_wait(struct request *request);

bool request_is_done(const struct request *request);

/* The caller waits no more. False: it is done, and his to free. */
bool request_leave(struct request *request);

#endif
