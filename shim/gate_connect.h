/* SPDX-License-Identifier: MIT */
/* The path of connect(), and of what begins a connection otherwise. As gate.h in all else. */
#ifndef SHUNT_SHIM_GATE_CONNECT_H
#define SHUNT_SHIM_GATE_CONNECT_H

#include "shim/gate.h"

/* The rule of an address and its cell, as gate_connect() finds them; NULL: none. */
const struct rule *gate_judge(const struct sockaddr *address, socklen_t length, uint64_t now_ns,
		struct cell **ret_cell, uint64_t *ret_cell_hash);

/* connect(), sendto()/sendmsg() with MSG_FASTOPEN. False: refused, errno is set, no SYN leaves. */
bool gate_connect(struct gate *gate, int fd, const struct sockaddr *address, socklen_t length);
int gate_connected(struct gate *gate, int result);

/* It was refused, or failed: may the socket go to a fallback instead? Not one whose attempt began
 * in an earlier call, nor one that is connected or dead, nor what another thread put in its place.
 */
static inline bool gate_may_fall_back(const struct gate *gate)
{
	return gate->is_attempt && (!gate->connection || gate_is_held(gate));
}

/* It failed. Only because we bounded it? Then it shall be made once more. */
bool gate_connects_again(struct gate *gate);

/* After gate_connect() of a fast-open send was true: tells of the bytes that went with the SYN. */
ssize_t gate_fast_opened(struct gate *gate, struct bytes bytes, ssize_t result);

#endif
