/* SPDX-License-Identifier: MIT */
/*
 * The one path of every guarded call: hooks ask before the real call and tell after it. Every
 * function keeps errno unless it says that it sets it; none blocks, locks or allocates.
 *
 * A hook looks like this:
 *
 *	struct connection *connection = gate_find(fd);
 *	if (!connection)
 *		return real()->send(fd, data, size, flags);
 *	struct iovec vector = { (void *)data, size };
 *	struct gate gate;
 *	if (!gate_send(&gate, connection, fd, (struct bytes){ &vector, 1 }, flags))
 *		return -1;
 *	return gate_sent(&gate, real()->send(fd, data, size, flags));
 */
#ifndef SHUNT_SHIM_GATE_H
#define SHUNT_SHIM_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "shim/bound.h"
#include "shim/exchange.h"
#include "shim/fd_table.h"

/* What a hook carries from before the real call to after it. The second half may never run. */
struct gate {
	struct connection *connection; /* NULL: not ours; the second half does nothing */
	struct bytes bytes;
	uint64_t began_ns;
	int fd;
	uint32_t generation; /* of the connection, when the call began */
	bool is_peek;
	bool may_not_wait;
	bool is_disconnect;
	bool is_attempt; /* a connect that began in this call, or was not let begin */
	bool is_timed; /* a send on a connection with deadlines */
	struct bound bound; /* of a connect */
};

/* The connection of a descriptor that is ours to judge, or NULL: one bounds check and one load. */
static inline struct connection *gate_find(int fd)
{
	return fd_table_find(fd);
}

/* For the halves of hooks: gate.c, gate_connect.c. */
static inline void gate_hold(struct gate *gate, struct connection *connection)
{
	gate->connection = connection;
	gate->generation = fd_table_generation(connection);
}

/* False: while this thread was in the real call, another closed the descriptor, and the connection
 * may stand for another one by now. */
static inline bool gate_is_held(const struct gate *gate)
{
	return gate->connection && gate->generation == fd_table_generation(gate->connection);
}

/* False: refused or cut, errno is ECONNRESET; or timed out, errno is ETIMEDOUT. Nothing may be
 * sent. */
bool gate_send(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags);
ssize_t gate_sent(struct gate *gate, ssize_t result);

/* False: cut or timed out, errno is as for send; or interrupted while it was bounded, errno is
 * EINTR. `bytes` is where the data will be. */
bool gate_receive(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags);
ssize_t gate_received(struct gate *gate, ssize_t result);

#endif
