/* SPDX-License-Identifier: MIT */
/*
 * A time set to one blocking call by the socket's own option, SO_SNDTIMEO around connect(),
 * SO_RCVTIMEO around a recv, and the program's put back after it. Needs no thread. Makes system
 * calls, none once a filter was seen; async-signal-safe, errno is kept.
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

/* After the call. Where a seccomp filter came meanwhile the time stays: nothing may be put back. */
void bound_end(const struct bound *bound, int fd);

#endif
