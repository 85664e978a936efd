/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a datagram under fault rules (proto=udp). A socket is a connection of fd_table,
 * unmetered, from its first datagram to or from an endpoint that a rule names; each further one is
 * a call of it, in either direction. Lock-free, async-signal-safe.
 */
#ifndef SHUNT_SHIM_DATAGRAM_FATE_H
#define SHUNT_SHIM_DATAGRAM_FATE_H

#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

struct fate {
	enum fate_kind kind; /* never FATE_OPEN */
	int error;           /* of FATE_FAILS */
	uint64_t delay_ns;   /* from when it came, or is sent */
};

/* Of one that is about to be sent there. */
struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length);

/* Of the one that the socket has to be received next. Until when (CLOCK_MONOTONIC) is it held? 0:
 * not at all. Errno is kept. */
uint64_t fate_of_next(int fd, uint64_t now_ns, struct fate *ret_fate);

/* Was it looked at before? */
bool fate_is_known(int fd);

/* It has been taken, or will be once more as it is (FATE_TWICE): what comes then is another. */
void fate_of_next_ends(int fd, enum fate_kind kind);

#endif
