/* SPDX-License-Identifier: MIT */
/*
 * An attempt that the kernel is done with, or was never asked for, and that the program shall not
 * see the end of before it is due: meanwhile it is under way still, whatever asks.
 * Async-signal-safe.
 */
#ifndef SHUNT_SHIM_HELD_ATTEMPT_H
#define SHUNT_SHIM_HELD_ATTEMPT_H

#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

/* Until then; then it ends with `error`, or, where that is 0, as the kernel says. */
void held_attempt_begin(struct slot *slot, uint64_t due_ns, int error);
void held_attempt_end(struct slot *slot);

/* Did a real connect() succeed of which the program was told that it goes on? Once. */
bool held_attempt_was_made(struct slot *slot);

/* Sleeps until then, or until the connection is ended by its deadline or shut by the program, but
 * not by its peer. Else as socket_sleep(). */
bool held_sleep(const struct connection *connection, int fd, uint64_t until_ns,
		bool has_own_time);

/* Until when; 0: it is not held, or not any more. */
uint64_t held_attempt_ns(const struct slot *slot, uint64_t now_ns);

/* Takes out the error with which it ended; 0: none, or it is held still. */
int held_attempt_error(struct slot *slot, uint64_t now_ns);

/* In place of the real ones. */
int held_attempt_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int held_attempt_getpeername(int fd, struct sockaddr *address, socklen_t *length);

#endif
