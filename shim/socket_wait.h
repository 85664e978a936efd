/* SPDX-License-Identifier: MIT */
/*
 * The waits of blocking calls that are made in two steps. As the calls themselves they are
 * cancellation points, may be left by longjmp, and a socket's own time, where the call has one
 * (SO_RCVTIMEO, SO_SNDTIMEO), makes any signal handler interrupt them. Async-signal-safe; errno is
 * kept.
 */
#ifndef SHUNT_SHIM_SOCKET_WAIT_H
#define SHUNT_SHIM_SOCKET_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* In front of a call that receives, without taking anything, so that a fault can look at what came
 * before the program has it. Until there is something: 0. Or the error that ends the call: EAGAIN
 * at end_ns (its own time; 0: never), EINTR, what poll() says. */
int socket_wait(int fd, uint64_t end_ns);

/* Sleeps until then, or until both sides are shut (fd -1: not that). False: by a signal. */
bool socket_sleep(int fd, uint64_t until_ns, bool has_own_time);

#endif
