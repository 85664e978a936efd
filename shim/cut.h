/* SPDX-License-Identifier: MIT */
/*
 * A kept-alive connection that is refused its next request is cut: not one byte is sent, whoever
 * waits on it wakes, and until it is closed every send and recv gives ECONNRESET. Before each such
 * answer the kernel is asked whether the descriptor still is a TCP socket: had the connection been
 * closed where no preload sees it, the answer would lose some other file its data. Under a seccomp
 * filter, which may kill for a call that the program never makes, nothing is asked and nobody is
 * woken. Lock-free, async-signal-safe.
 */
#ifndef SHUNT_SHIM_CUT_H
#define SHUNT_SHIM_CUT_H

#include <stdbool.h>

#include "shim/fd_table.h"

/* True: cut, errno is ECONNRESET. False: fd names another file by now; it is forgotten, errno is
 * kept, and the call goes on. */
bool cut_connection(struct connection *connection, int fd);

/* A call on a connection that is dead: cut before, or timed out (shim/timed.h), when errno is
 * ETIMEDOUT. Otherwise as cut_connection(). */
bool cut_answers(struct connection *connection, int fd);

#endif
