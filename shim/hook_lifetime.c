/* SPDX-License-Identifier: MIT */
/* How descriptors are born, copied and closed. */
#include "shim/hook_lifetime.h"

#include <errno.h>
#include <linux/close_range.h>
#include <stdarg.h>

#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/real.h"

HOOK(int, socket, (int domain, int type, int protocol))
{
	int fd = real()->socket(domain, type, protocol);

	if (fd >= 0)
		gate_born(fd, domain, type);
	return fd;
}

int born_other(int fd)
{
	if (fd >= 0)
		gate_born_other(fd);
	return fd;
}

HOOK(int, socketpair, (int domain, int type, int protocol, int ends[2]))
{
	if (real()->socketpair(domain, type, protocol, ends))
		return -1;
	gate_born_other(ends[0]);
	gate_born_other(ends[1]);
	return 0;
}

/* It will not connect any more: what connect() says of it is the kernel's to say. */
HOOK(int, listen, (int fd, int backlog))
{
	int result = real()->listen(fd, backlog);

	if (result == 0)
		gate_born_other(fd);
	return result;
}

HOOK(int, accept, (int fd, struct sockaddr *address, socklen_t *length))
{
	return born_other(real()->accept(fd, address, length));
}

HOOK(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags))
{
	return born_other(real()->accept4(fd, address, length, flags));
}

/* Forgotten before the real close: afterwards the number may be another thread's. */
HOOK(int, close, (int fd))
{
	gate_close(fd);
	return real()->close(fd);
}

void close_range_begins(unsigned int first, unsigned int last, int flags)
{
	if (first <= last && !(flags & ~CLOSE_RANGE_UNSHARE))
		gate_close_range(first, last);
}

HOOK(int, close_range, (unsigned int first, unsigned int last, int flags))
{
	close_range_begins(first, last, flags);
	return real()->close_range(first, last, flags);
}

HOOK(void, closefrom, (int first))
{
	gate_close_range(first < 0 ? 0 : (unsigned int)first, ~0u);
	real()->closefrom(first);
}

/* fcntl(F_DUPFD), dup: at a number that was free. */
static int copied(int fd, int copy)
{
	if (copy >= 0)
		gate_copied(fd, copy, FD_OTHER);
	return copy;
}

int copy_ended(int fd, int copy, uint32_t taken, int result)
{
	if (result < 0)
		gate_not_copied(copy, taken);
	else if (fd != copy)
		gate_copied(fd, copy, taken);
	return result;
}

HOOK(int, dup, (int fd))
{
	return copied(fd, real()->dup(fd));
}

HOOK(int, dup2, (int fd, int copy))
{
	uint32_t taken = gate_copy_begins(fd, copy);

	return copy_ended(fd, copy, taken, real()->dup2(fd, copy));
}

HOOK(int, dup3, (int fd, int copy, int flags))
{
	uint32_t taken = gate_copy_begins(fd, copy);

	return copy_ended(fd, copy, taken, real()->dup3(fd, copy, flags));
}

static bool command_copies(int command)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* Every command's argument fits a pointer. */
HOOK(int, fcntl, (int fd, int command, ...))
{
	va_list list;
	void *argument;
	int result;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	result = real()->fcntl(fd, command, argument);
	return command_copies(command) ? copied(fd, result) : result;
}

HOOK(int, fcntl64, (int fd, int command, ...))
{
	va_list list;
	void *argument;
	int result;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	result = real()->fcntl64(fd, command, argument);
	return command_copies(command) ? copied(fd, result) : result;
}

HOOK(FILE *, fdopen, (int fd, const char *mode))
{
	FILE *stream = real()->fdopen(fd, mode);

	if (stream)
		gate_left_to_stdio(fd);
	return stream;
}

static int descriptor_of(FILE *stream)
{
	int error = errno;
	int fd = fileno(stream);

	errno = error;
	return fd;
}

/* libc moves the new file to the number of the old one by itself. */
static void reopened(int fd)
{
	/* One that fails has closed it. */
	gate_close_range((unsigned int)fd, (unsigned int)fd);
}

HOOK(FILE *, freopen, (const char *path, const char *mode, FILE *stream))
{
	int fd = descriptor_of(stream);

	stream = real()->freopen(path, mode, stream);
	reopened(fd);
	return stream;
}

HOOK(FILE *, freopen64, (const char *path, const char *mode, FILE *stream))
{
	int fd = descriptor_of(stream);

	stream = real()->freopen64(path, mode, stream);
	reopened(fd);
	return stream;
}

/* libc's own dup2(): the standard descriptors are another file's now. */
HOOK(int, daemon, (int keeps_directory, int keeps_descriptors))
{
	int result = real()->daemon(keeps_directory, keeps_descriptors);

	if (result == 0 && !keeps_descriptors)
		gate_close_range(0, 2);
	return result;
}

HOOK(int, login_tty, (int fd))
{
	int result = real()->login_tty(fd);

	if (result == 0) {
		gate_close_range(0, 2);
		gate_close(fd);
	}
	return result;
}
