/* SPDX-License-Identifier: MIT */
/* What a program sets and asks of a socket, by the gate. Keeps errno; none of them blocks, locks or
 * allocates. */
#ifndef SHUNT_SHIM_GATE_OPTION_H
#define SHUNT_SHIM_GATE_OPTION_H

#include <stdint.h>

/* getsockopt(SO_ERROR) succeeded and gave `error`; on a cut connection *error is ECONNRESET, on one
 * that timed out ETIMEDOUT. */
void gate_so_error(int fd, int *error);

/* setsockopt(SO_RCVTIMEO) succeeded. */
void gate_receive_timeout(int fd, uint64_t timeout_ns);

#endif
