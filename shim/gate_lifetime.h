/* SPDX-License-Identifier: MIT */
/*
 * Births, copies and deaths of descriptors and of the process, by the gate. Every function keeps
 * errno; none blocks, locks or allocates. In a vfork child they do nothing: its parent's
 * descriptors stay.
 */
#ifndef SHUNT_SHIM_GATE_LIFETIME_H
#define SHUNT_SHIM_GATE_LIFETIME_H

#include <stdint.h>

/* socket() made `fd`. */
void gate_born(int fd, int domain, int type);

/* accept, socketpair, received with a message: `fd` is no socket that we saw being born to connect.
 */
void gate_born_other(int fd);

/* epoll_create(): an empty set. */
void gate_born_set(int set);

/* Before the real close(): settles the call if this is the last descriptor, and forgets fd. */
void gate_close(int fd);

/* close_range(), closefrom(): every descriptor from first to last. Cost bounded by the table. */
void gate_close_range(unsigned int first, unsigned int last);

/* Before dup2(), dup3(): takes away what stands at `copy`, for in the moment after the real call
 * another thread's recv already sees the new file there, whose end is not the old connection's.
 * The answer goes to gate_copied() or gate_not_copied(). */
uint32_t gate_copy_begins(int fd, int copy);
void gate_not_copied(int copy, uint32_t taken);

/* dup, dup2, dup3, F_DUPFD made `copy` of `fd`; taken: FD_OTHER but for dup2 and dup3. */
void gate_copied(int fd, int copy, uint32_t taken);

/* Before shutdown(): a reader or a connect that it wakes must find the call ended. Does nothing on
 * a connection that was never attempted, where shutdown() fails. */
void gate_shut(int fd, int how);

/* fdopen() took fd. */
void gate_left_to_stdio(int fd);

/* The program ends itself (exit family, our destructor): settles all open calls, once. */
void gate_exit(void);

/* pthread_atfork handlers. A call that is open at fork is cancelled, by the parent, and its
 * connection leaves the model in both; the parent's keeps the call's place until an answer comes,
 * or its end. */
void gate_fork_parent(void);
void gate_fork_child(void);

#endif
