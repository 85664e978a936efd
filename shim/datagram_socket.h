/* SPDX-License-Identifier: MIT */
/*
 * Datagram sockets under fault rules (proto=udp). Each is a connection of fd_table, unmetered, from
 * its birth; and one of a rule from when it is connected to an endpoint that the rule names, or
 * from its first datagram to or from one. Lock-free, async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_DATAGRAM_SOCKET_H
#define SHUNT_SHIM_DATAGRAM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

/* Is it one, of those that were born while there were fault rules? */
bool datagram_is(int fd);

/* The socket is new. */
void datagram_begins(int fd);

/* It was connected, or disconnected. */
void datagram_peer_is(int fd, const struct sockaddr *address, socklen_t length);

/* May a rule strike what fd sends or receives? False for what is no datagram socket, for one whose
 * peer no rule names, and, where none may be made, if it took system calls to know. */
bool datagram_is_concerned(int fd, enum fault_direction direction);

/* What is known of the socket, or NULL; and with what is missing made, NULL: no room. */
struct slot *datagram_slot(int fd);
struct slot *datagram_track(int fd);

/* Of slot->peer: who it is, asked for where it is not known. */
uint32_t datagram_peer(struct slot *slot, int fd);

/* The socket under the rule, where its datagrams are counted; NULL: no room. */
struct strike *datagram_strike(struct slot *slot, uint32_t rule, uint64_t now_ns);

/* Is the rule about datagrams of that direction? */
bool datagram_is_about(const struct fault *fault, enum fault_direction direction);

#endif
