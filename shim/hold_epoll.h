/* SPDX-License-Identifier: MIT */
/* epoll as the program sees it where readiness may be held (shim/hold.h): of the arguments and
 * results of the functions that they stand for. */
#ifndef SHUNT_SHIM_HOLD_EPOLL_H
#define SHUNT_SHIM_HOLD_EPOLL_H

#include <signal.h>
#include <sys/epoll.h>
#include <time.h>

int hold_epoll_ctl(int set, int operation, int fd, struct epoll_event *event);
int hold_epoll_wait(int set, struct epoll_event *events, int room, int timeout);
int hold_epoll_pwait(int set, struct epoll_event *events, int room, int timeout,
		const sigset_t *mask);
int hold_epoll_pwait2(int set, struct epoll_event *events, int room,
		const struct timespec *timeout, const sigset_t *mask);

#endif
