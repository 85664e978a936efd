/* SPDX-License-Identifier: MIT */
/*
 * Data that a program sends or receives on a connection under faults: how much of it may pass now,
 * late, changed, or not at all. One call of the program is a move, made of as many real calls as it
 * takes. Async-signal-safe but for waiting.
 */
#ifndef SHUNT_SHIM_PASSAGE_H
#define SHUNT_SHIM_PASSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "shim/inject_slot.h"

struct move;

/* The real call, with these vectors in place of the program's (`size` bytes), or, where the data is
 * out of sight (count 0), at most `size` bytes of it. */
typedef ssize_t move_make(const struct move *move, const struct iovec *vectors, size_t count,
		size_t size);

struct move {
	move_make *make;
	const struct iovec *vectors;
	size_t count;
	size_t size; /* of all of them */
	int fd;
	int flags;   /* MSG_ */
	enum fault_direction direction;
	const void *arguments; /* make's own */
};

/* The slot of fd, if faults may have anything to do with its data now; NULL: the real call is to be
 * made as it came. *ret_connection is set with it. */
struct slot *passage_find(int fd, struct connection **ret_connection);

/* Result and errno as of the call that the program made. */
ssize_t passage_move(const struct move *move, struct connection *connection, struct slot *slot);

#endif
