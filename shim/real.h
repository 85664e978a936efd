/* SPDX-License-Identifier: MIT */
/*
 * The table of real functions behind the hooks, and HOOK, which defines one.
 *
 * real() works at any time: before our constructor, from other libraries' constructors, and while
 * the table itself is being filled (an allocator that reads a file when dlsym() first calls it):
 * then system calls go to the kernel directly. A symbol that this libc does not have answers
 * ENOSYS.
 */
#ifndef SHUNT_SHIM_REAL_H
#define SHUNT_SHIM_REAL_H

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utmp.h>

/* Every symbol that is hooked, once, and the system call of the same arguments where there is one.
 * The table, its filling, the version script and the export check all read this. */
#define REAL_SYMBOLS(SYMBOL) \
	SYMBOL(read, SYS_read) \
	SYMBOL(write, SYS_write) \
	SYMBOL(close, SYS_close) \
	SYMBOL(syscall, ANY_CALL) \
	SYMBOL(fcntl, SYS_fcntl) \
	SYMBOL(fcntl64, SYS_fcntl) \
	SYMBOL(connect, SYS_connect) \
	SYMBOL(send, NO_CALL) \
	SYMBOL(sendto, SYS_sendto) \
	SYMBOL(sendmsg, SYS_sendmsg) \
	SYMBOL(sendmmsg, SYS_sendmmsg) \
	SYMBOL(writev, SYS_writev) \
	SYMBOL(sendfile, SYS_sendfile) \
	SYMBOL(sendfile64, SYS_sendfile) \
	SYMBOL(splice, SYS_splice) \
	SYMBOL(recv, NO_CALL) \
	SYMBOL(recvfrom, SYS_recvfrom) \
	SYMBOL(recvmsg, SYS_recvmsg) \
	SYMBOL(recvmmsg, NO_CALL) \
	SYMBOL(readv, SYS_readv) \
	SYMBOL(__read_chk, SYS_read) \
	SYMBOL(__recv_chk, NO_CALL) \
	SYMBOL(__recvfrom_chk, NO_CALL) \
	SYMBOL(socket, SYS_socket) \
	SYMBOL(socketpair, SYS_socketpair) \
	SYMBOL(listen, SYS_listen) \
	SYMBOL(accept, SYS_accept) \
	SYMBOL(accept4, SYS_accept4) \
	SYMBOL(close_range, SYS_close_range) \
	SYMBOL(closefrom, NO_CALL) \
	SYMBOL(dup, SYS_dup) \
	SYMBOL(dup2, NO_CALL) \
	SYMBOL(dup3, SYS_dup3) \
	SYMBOL(fdopen, NO_CALL) \
	SYMBOL(freopen, NO_CALL) \
	SYMBOL(freopen64, NO_CALL) \
	SYMBOL(daemon, NO_CALL) \
	SYMBOL(login_tty, NO_CALL) \
	SYMBOL(shutdown, SYS_shutdown) \
	SYMBOL(setsockopt, SYS_setsockopt) \
	SYMBOL(getsockopt, SYS_getsockopt) \
	SYMBOL(getpeername, SYS_getpeername) \
	SYMBOL(poll, NO_CALL) \
	SYMBOL(ppoll, NO_CALL) \
	SYMBOL(__poll_chk, NO_CALL) \
	SYMBOL(__ppoll_chk, NO_CALL) \
	SYMBOL(select, NO_CALL) \
	SYMBOL(pselect, NO_CALL) \
	SYMBOL(epoll_create, NO_CALL) \
	SYMBOL(epoll_create1, SYS_epoll_create1) \
	SYMBOL(epoll_ctl, SYS_epoll_ctl) \
	SYMBOL(epoll_wait, NO_CALL) \
	SYMBOL(epoll_pwait, NO_CALL) \
	SYMBOL(epoll_pwait2, NO_CALL) \
	SYMBOL(getaddrinfo, NO_CALL) \
	SYMBOL(gethostbyname, NO_CALL) \
	SYMBOL(gethostbyname2, NO_CALL) \
	SYMBOL(gethostbyname_r, NO_CALL) \
	SYMBOL(gethostbyname2_r, NO_CALL) \
	SYMBOL(_exit, SYS_exit_group) \
	SYMBOL(_Exit, SYS_exit_group) \
	SYMBOL(quick_exit, SYS_exit_group) \
	SYMBOL(vfork, NO_CALL) \
	SYMBOL(_Fork, NO_CALL) \
	SYMBOL(unshare, SYS_unshare) \
	SYMBOL(setns, SYS_setns) \
	SYMBOL(prctl, SYS_prctl)

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

/* libc's own function of this name, whatever preload stands before or behind us, or NULL. Loads
 * nothing; for start only, it takes the loader's lock. */
void *real_of_libc(const char *name);

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

/* The half of a hook that most calls do not take, kept out of the half that they do. */
#define GUARDED __attribute__((noinline)) static

#endif
