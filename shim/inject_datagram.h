/* SPDX-License-Identifier: MIT */
/*
 * Faults of datagrams (proto=udp): lost, doubled, late, refused, as shim/datagram_fate.h decides.
 * Readiness that a lost datagram leaves behind is true to life.
 */
#ifndef SHUNT_SHIM_INJECT_DATAGRAM_H
#define SHUNT_SHIM_INJECT_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "shim/passage.h"
#include "shim/withheld.h"

/* As the call that the program made, on a socket that datagram_is_concerned(); address NULL: to its
 * peer. Messages can be read. */
ssize_t datagram_send(const struct move *move, const struct sockaddr *address, socklen_t length);
ssize_t datagram_receive(const struct move *move);
int datagram_send_many(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int datagram_receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout);

/* For shim/hold.h: of fd that is one. */
struct hold_times datagram_hold(int fd, uint32_t events, uint64_t now_ns);

#endif
