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

#include "shim/withheld.h"

/* Is fd a datagram socket, and is there a rule about such? */
bool datagram_concerns(int fd);

/* As sendmsg(), recvmsg() and the like, on such a socket. The message can be read. */
ssize_t datagram_send(int fd, const struct msghdr *message, int flags);
ssize_t datagram_receive(int fd, struct msghdr *message, int flags);
int datagram_send_many(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int datagram_receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout);

/* For shim/hold.h: of fd that is one. */
struct hold_times datagram_hold(int fd, uint32_t events, uint64_t now_ns);

#endif
