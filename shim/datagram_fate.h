/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a datagram under fault rules (proto=udp). Each to or from an endpoint that a rule
 * names is a call of its socket under that rule. Lock-free, async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_DATAGRAM_FATE_H
#define SHUNT_SHIM_DATAGRAM_FATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

struct fate {
	enum fate_kind kind;
	int error;         /* of FATE_FAILS */
	uint64_t delay_ns; /* from when it came */
	uint32_t turn;     /* fate_take()'s */
};

/* Of one that is about to be sent there; address NULL: to the peer. */
struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length);

/* It was not sent after all: the next one is. */
void fate_put_off(int fd, int error);

/*
 * Of the one that the socket has to be received next, after those that were lost are taken away.
 * FATE_OPEN: there is none. FATE_LOST: none any more. FATE_FAILS is also an error of the socket
 * itself. *ret_due_ns: until when (CLOCK_MONOTONIC) it is held, or to look again (FATE_BUSY); 0:
 * not at all.
 */
struct fate fate_of_next(int fd, uint64_t now_ns, uint64_t *ret_due_ns);

/* The same of one that was looked at before, without a system call. */
uint64_t fate_is_held(int fd, uint64_t now_ns);

/* And is it a failure? */
bool fate_is_failure(int fd);

/* About to take it. False: another thread did, or does. */
bool fate_take(int fd, struct fate *fate, uint64_t now_ns);

/* It has been taken, or is there still, as it is (FATE_TWICE, FATE_FAILS): what comes then is
 * another. */
void fate_taken(int fd, const struct fate *fate);

#endif
