/* SPDX-License-Identifier: MIT */
/*
 * A time set to one blocking call without any thread: to connect() by the socket's own option,
 * SO_SNDTIMEO, the program's put back after it; to a recv by a wait in front of it, for a time of
 * the socket's would show in what the recv returns (MSG_WAITALL, signals). Makes system calls, none
 * once a filter was seen; async-signal-safe, errno is kept unless it says that it sets it.
 */
#ifndef SHUNT_SHIM_BOUND_H
#define SHUNT_SHIM_BOUND_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory: none. */
struct bound {
	uint64_t own_us; /* the program's; 0: none */
	int option;      /* 0: nothing was set */
};

/* The time that is set to blocking calls on that socket, by that option; 0: none. */
uint64_t bound_own_ns(int fd, int option);

/* Before the call. Does nothing on a non-blocking socket, and where the program's own time is
 * shorter. Until the call returns the kernel counts in ticks, and a little more is asked for: the
 * time has passed when it is over. */
void bound_begin(struct bound *bound, int fd, int option, uint64_t duration_ns);

static inline bool bound_is_set(const struct bound *bound)
{
	return bound->option != 0;
}

/* The call was interrupted by a signal, and bounded ones always say so: would it have gone on by
 * itself? Then the rest of the time is set, and it shall be made again. */
bool bound_goes_on(const struct bound *bound, int fd, uint64_t duration_ns);

enum bound_waited {
	BOUND_READY,      /* there is something to be read, or nothing to wait for: it is made */
	BOUND_AGAIN,      /* the time is over, or a signal came which does not show */
	BOUND_INTERRUPTED /* errno is EINTR, as the recv would have been */
};

/* Before a recv that may block: waits for what it would wait for. Not on a non-blocking socket, nor
 * where the program's own time is shorter. A cancellation point, and may be left by longjmp. */
enum bound_waited bound_await(int fd, uint64_t duration_ns);

/* After the call. Where a seccomp filter came meanwhile the time stays: nothing may be put back. */
void bound_end(const struct bound *bound, int fd);

#endif
