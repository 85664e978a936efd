/* SPDX-License-Identifier: MIT */
/*
 * Attempts under faults, beneath the hooks: in place of the real connect(). What an attempt that is
 * held says of itself meanwhile is in shim/held_attempt.h.
 */
#ifndef SHUNT_SHIM_INJECT_CONNECT_H
#define SHUNT_SHIM_INJECT_CONNECT_H

#include <stdbool.h>
#include <sys/socket.h>

int inject_connect(int fd, const struct sockaddr *address, socklen_t length);

/* A send that connects (MSG_FASTOPEN): false: it does not, errno is set. */
bool inject_fast_open(int fd, const struct sockaddr *address, socklen_t length);

#endif
