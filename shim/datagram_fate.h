/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a datagram under fault rules (proto=udp). Each to or from an endpoint that a rule
 * names is a call of its socket under that rule. Lock-free, async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_DATAGRAM_FATE_H
#define SHUNT_SHIM_DATAGRAM_FATE_H

#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

struct fate {
	enum fate_kind kind;
	int error;         /* of FATE_FAILS */
	uint64_t delay_ns; /* from when it came */
};

/* Of one that is about to be sent there; address NULL: to the peer. */
struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length);

/*
 * Of the one that the socket has to be received next, after those that were lost are taken away.
 * FATE_OPEN: there is none. FATE_LOST: none any more. FATE_FAILS is also an error of the socket
 * itself. *ret_due_ns: until when (CLOCK_MONOTONIC) it is held; 0: not at all.
 */
struct fate fate_of_next(int fd, uint64_t now_ns, uint64_t *ret_due_ns);

/* The same of one that was looked at before, without a system call. */
uint64_t fate_is_held(int fd, uint64_t now_ns);

/* It has been taken, or will be once more as it is (FATE_TWICE): what comes then is another. */
void fate_of_next_ends(int fd, enum fate_kind kind);

#endif
