/* SPDX-License-Identifier: MIT */
/*
 * Where a connect goes that its target refuses: the rule's `fallback`. What comes of it is nobody's
 * outcome; it has a limit of its own. The rest of the connection's life is not judged.
 */
#ifndef SHUNT_SHIM_FALLBACK_H
#define SHUNT_SHIM_FALLBACK_H

#include <sys/socket.h>

/* The connect of fd to that address was refused, or failed, with errno. Connects to the fallback of
 * its rule and returns what that came to, with errno; -1 and errno as it was where there is none,
 * or it is full, or no way leads there from this socket, or the socket has a peer. */
int fallback_connect(int fd, const struct sockaddr *address, socklen_t length);

#endif
