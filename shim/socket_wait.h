/* SPDX-License-Identifier: MIT */
/*
 * The wait of a blocking call that receives, in front of it: as the call itself would wait, and
 * without taking anything, so that a fault can look at what came before the program has it.
 */
#ifndef SHUNT_SHIM_SOCKET_WAIT_H
#define SHUNT_SHIM_SOCKET_WAIT_H

#include <stdint.h>

/* Until there is something to receive: 0. Or the error that ends the call: EAGAIN at end_ns (its
 * SO_RCVTIMEO; 0: never), EINTR, what poll() says. A cancellation point, and may be left by
 * longjmp. Async-signal-safe, errno is kept. */
int socket_wait(int fd, uint64_t end_ns);

#endif
