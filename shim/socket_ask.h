/* SPDX-License-Identifier: MIT */
/*
 * What the kernel knows of a socket, and what it is made to do to it: by system calls of our own,
 * of which none is made once a seccomp filter was seen; then each answers as for a socket that is
 * non-blocking, without data, and without options. Async-signal-safe, errno is kept.
 */
#ifndef SHUNT_SHIM_SOCKET_ASK_H
#define SHUNT_SHIM_SOCKET_ASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

bool socket_is_blocking(int fd);

/* Of these poll events (and POLLERR, POLLHUP), which there are now. */
uint32_t socket_readiness(int fd, uint32_t events);

/* Since when, at most, there has been data: how long ago the last came, of TCP. */
uint64_t socket_data_age_ns(int fd);

/* How long ago the datagram came that was looked at last; 0 where it is not known. Unstamped: it
 * came before this was asked for the first time, or before the kernel had got round to it. */
#define SOCKET_UNSTAMPED UINT64_MAX
uint64_t socket_datagram_age_ns(int fd);

/* Bytes to be read. */
uint32_t socket_queued(int fd);

/* The socket's own SO_RCVTIMEO or SO_SNDTIMEO; 0: none. */
uint64_t socket_timeout_ns(int fd, int option);

/* The length of the address of whoever sent the datagram that is next, which stays; or a negated
 * errno: EAGAIN, there is none. Another error is the socket's own (SO_ERROR), and taken. */
long socket_next_sender(int fd, struct sockaddr_storage *ret);
/* Takes it. */
void socket_drop_next(int fd);

/* SO_ERROR, which is taken; 0: none. */
int socket_error(int fd);

/* 0 where it has no peer. */
socklen_t socket_peer(int fd, struct sockaddr_storage *ret);

/* From now on the kernel drops whatever comes in for it. False: it cannot be made to (the filter is
 * locked, the user is not allowed to). And no longer. */
bool socket_silence(int fd);
void socket_listen_again(int fd);

/* What stands for it then: later than anybody waits. */
#define SOCKET_SILENCE_NS (365 * 86400 * 1000000000ull)

/* Shuts the receiving side, which sends nothing: whoever waits for data wakes. */
void socket_wake(int fd);

#endif
