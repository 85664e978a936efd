/* SPDX-License-Identifier: MIT */
/* select where readiness may be held (shim/hold.h): of the arguments and results of the functions
 * that they stand for. */
#ifndef SHUNT_SHIM_HOLD_SELECT_H
#define SHUNT_SHIM_HOLD_SELECT_H

#include <sys/select.h>

int hold_select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout);
int hold_pselect(int count, fd_set *reads, fd_set *writes, fd_set *others,
		const struct timespec *timeout, const sigset_t *mask);

#endif
