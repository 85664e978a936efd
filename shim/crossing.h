/* SPDX-License-Identifier: MIT */
/*
 * One real call that moves data on a connection under faults, before it is made: how much of it may
 * pass, or what is answered in its place. Async-signal-safe.
 */
#ifndef SHUNT_SHIM_CROSSING_H
#define SHUNT_SHIM_CROSSING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "shim/arrival.h"

struct crossing {
	struct sight sight;
	enum fault_direction direction;
	int flags;       /* MSG_ */
	size_t size;     /* that the program asks for */
	bool is_in_sight; /* the data is in memory of the program */
	/* What barrier_lets() says: */
	size_t limit;    /* so much of it */
	bool goes_on;    /* and then the rest: the limit is none of the program's business */
	struct strike *corrupts; /* and changed; or NULL */
	ssize_t answer;  /* where it does not */
	/* Of the program's call as a whole, which may be several real ones: */
	uint64_t began_ns;
	uint64_t own_ns; /* SO_RCVTIMEO or SO_SNDTIMEO, where it was asked for */
	bool knows_own;
};

static inline bool crossing_is_receiving(const struct crossing *crossing)
{
	return crossing->direction == FAULT_IN;
}

/* Does the program's call itself go on until all is moved? */
static inline bool crossing_moves_all(const struct crossing *crossing)
{
	return crossing->sight.is_blocking && !(crossing->flags & MSG_PEEK) &&
			(!crossing_is_receiving(crossing) || crossing->flags & MSG_WAITALL);
}

/* Is the socket ready for it, as the kernel says? */
bool crossing_is_ready(const struct crossing *crossing);

/* When a blocking call ends by its SO_RCVTIMEO or SO_SNDTIMEO; 0: never. */
uint64_t crossing_end_ns(struct crossing *crossing);

/* A blocking call sleeps until then, as held_sleep() does. False: it is answered, for it was
 * interrupted, or its own time is over. */
bool crossing_sleep(struct crossing *crossing, uint64_t until_ns);

/* The call is not made, but answered: false. With -1 errno is set. */
bool crossing_answer(struct crossing *crossing, ssize_t result, int error);

/* EAGAIN: the program shall come again when the kernel says so, and that it does is held. */
bool crossing_answer_again(struct crossing *crossing);

/* The connection is dead until it is closed, by this error, or, where that is 0, by its end of
 * stream; whoever waits for it wakes. */
void crossing_end_connection(struct crossing *crossing, int error);

/* With what one that died by an error fails: where only the other direction can fail so, the end of
 * the stream (0), or EPIPE. */
int crossing_dead_error(const struct crossing *crossing);

/* What a dead connection answers. True: nothing, and this call goes on. */
bool crossing_answer_dead(struct crossing *crossing);

#endif
