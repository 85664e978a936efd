/* SPDX-License-Identifier: MIT */
/* poll where readiness may be held (shim/hold.h): of the arguments and results of the functions
 * that they stand for. */
#ifndef SHUNT_SHIM_HOLD_POLL_H
#define SHUNT_SHIM_HOLD_POLL_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

int hold_poll(struct pollfd *entries, nfds_t count, int timeout);
int hold_poll_chk(struct pollfd *entries, nfds_t count, int timeout, size_t room);
int hold_ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask);
int hold_ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

#endif
