/* SPDX-License-Identifier: MIT */
/* An epoll set concerns nobody but faults, which stand beneath real() (shim/hold.h): in a program
 * that waits, rules that are added by hand are seen here. */
#include <sys/epoll.h>

#include "shim/gate_lifetime.h"
#include "shim/inject.h"
#include "shim/real.h"

static int born(int set)
{
	if (set >= 0)
		gate_born_set(set);
	return set;
}

HOOK(int, epoll_create, (int size))
{
	return born(real()->epoll_create(size));
}

HOOK(int, epoll_create1, (int flags))
{
	return born(real()->epoll_create1(flags));
}

HOOK(int, epoll_ctl, (int set, int operation, int fd, struct epoll_event *event))
{
	return real()->epoll_ctl(set, operation, fd, event);
}

HOOK(int, epoll_wait, (int set, struct epoll_event *events, int room, int timeout))
{
	inject_look_outside();
	return real()->epoll_wait(set, events, room, timeout);
}

HOOK(int, epoll_pwait, (int set, struct epoll_event *events, int room, int timeout,
		const sigset_t *mask))
{
	inject_look_outside();
	return real()->epoll_pwait(set, events, room, timeout, mask);
}

HOOK(int, epoll_pwait2, (int set, struct epoll_event *events, int room,
		const struct timespec *timeout, const sigset_t *mask))
{
	inject_look_outside();
	return real()->epoll_pwait2(set, events, room, timeout, mask);
}
