/* SPDX-License-Identifier: MIT */
/*
 * The table of real functions behind the hooks, and HOOK, which defines one.
 *
 * real() works at any time: before our constructor, from other libraries' constructors, and while
 * the table itself is being filled (an allocator that reads a file when dlsym() first calls it):
 * then system calls go to the kernel directly. A symbol that this libc does not have answers ENOSYS.
 */
#ifndef SHUNT_SHIM_REAL_H
#define SHUNT_SHIM_REAL_H

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shim/real_symbols.h"

/* What fortified programs call; the headers declare these only to them. */
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags,
		struct sockaddr *address, socklen_t *length);
int __poll_chk(struct pollfd *entries, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room);

#define POINTER(name, number) __typeof__(name) *name;
struct real {
	REAL_SYMBOLS(POINTER)
};
#undef POINTER

extern struct real real_table __attribute__((visibility("hidden")));

/* Never NULL, and no entry is. Unit tests may write fakes into it. */
static inline struct real *real(void)
{
	return &real_table;
}

/* Fills the table if it is not yet: entries do so themselves when first called, but are C functions
 * of ours until then. */
void real_resolve(void);

/* Defines the hook of a symbol; in unit tests a function hook_NAME that nobody binds to. */
#ifdef SHUNT_TESTING
#define HOOK_NAME(name) hook_##name
#define HOOK(type, name, parameters) \
	type hook_##name parameters; \
	type hook_##name parameters
#else
#define HOOK_NAME(name) name
#define HOOK(type, name, parameters) __attribute__((visibility("default"))) type name parameters
#endif

#endif
