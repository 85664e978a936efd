/* SPDX-License-Identifier: MIT */
/*
 * A libc that returns at once: preloaded behind the library, so that only the library's cost shows.
 * Descriptors from STUB_FD on are its own; what is done to others goes to the kernel, where more is
 * at stake than a result: preloads read their files by it.
 *
 * The peers of scripts/bench need more than the library does: a SOCKS 5 proxy that agrees to all,
 * and for those that open libc by its name, an answer to that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define STUB __attribute__((visibility("default"), noinline))

/* The first number that socket() gives out; far from any real descriptor. */
#define STUB_FD 1000

/* "No authentication", then "connected, to 0.0.0.0:0": each answer is a beginning of this. */
static const unsigned char agreed[] = { 5, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
/* How much of the answer was read since the last question. */
static size_t agreed_at;
static int open_count;
static int handshakes;

/* How many proxies were asked for a connection. */
int bench_stub_handshakes(void);
STUB int bench_stub_handshakes(void)
{
	return handshakes;
}

STUB int socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return STUB_FD + open_count++;
}

STUB int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	return 0;
}

STUB int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	return 0;
}

STUB int shutdown(int fd, int how)
{
	(void)fd, (void)how;
	return 0;
}

STUB int close(int fd)
{
	if (fd >= STUB_FD && open_count > 0)
		open_count--;
	return 0;
}

STUB int dup2(int fd, int copy)
{
	return copy >= STUB_FD ? copy : (int)syscall(SYS_dup3, fd, copy, 0);
}

/* A question to the proxy. */
static ssize_t asked(size_t size)
{
	agreed_at = 0;
	return (ssize_t)size;
}

/* Its answer, asked for in small pieces; larger ones are the measured rows', which read nothing. */
static ssize_t answered(unsigned char *data, size_t size)
{
	if (size > sizeof(agreed))
		return (ssize_t)size;
	if (agreed_at + size > sizeof(agreed))
		agreed_at = 0;
	memcpy(data, agreed + agreed_at, size);
	agreed_at += size;
	handshakes += agreed_at == sizeof(agreed);
	return (ssize_t)size;
}

STUB ssize_t send(int fd, const void *data, size_t size, int flags)
{
	(void)fd, (void)data, (void)flags;
	return asked(size);
}

STUB ssize_t recv(int fd, void *data, size_t size, int flags)
{
	(void)fd, (void)flags;
	return answered(data, size);
}

STUB ssize_t write(int fd, const void *data, size_t size)
{
	return fd >= STUB_FD ? asked(size) : syscall(SYS_write, fd, data, size);
}

STUB ssize_t read(int fd, void *data, size_t size)
{
	return fd >= STUB_FD ? answered(data, size) : syscall(SYS_read, fd, data, size);
}

/* Apart: the header has it that poll() itself reads nothing of the caller's. */
__attribute__((noinline)) static int poll_ready(struct pollfd *entries, nfds_t count, int timeout)
{
	if (!count || entries[0].fd < STUB_FD)
		return (int)syscall(SYS_poll, entries, count, timeout);
	for (nfds_t index = 0; index < count; index++)
		entries[index].revents = entries[index].events;
	return (int)count;
}

STUB int poll(struct pollfd *entries, nfds_t count, int timeout)
{
	return poll_ready(entries, count, timeout);
}

STUB int fcntl(int fd, int command, ...)
{
	void *argument;
	va_list list;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	return fd >= STUB_FD ? 0 : (int)syscall(SYS_fcntl, fd, command, argument);
}

STUB int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	int answer = level == SOL_SOCKET && name == SO_TYPE ? SOCK_STREAM : 0;

	if (fd < STUB_FD)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, length);
	if (*length >= sizeof(answer))
		memcpy(value, &answer, sizeof(answer));
	return 0;
}

/* Asked for at every call by a peer. */
STUB pid_t getpid(void)
{
	static pid_t own;

	if (!own)
		own = (pid_t)syscall(SYS_getpid);
	return own;
}

/* Who opens libc by name gets the stub, behind which a lookup finds the rest of libc as well. */
STUB void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
	Dl_info self;

	if (name && strstr(name, "libc.so") && dladdr((void *)bench_stub_handshakes, &self))
		name = self.dli_fname;
	return real(name, flags);
}
