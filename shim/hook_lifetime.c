/* SPDX-License-Identifier: MIT */
/* How descriptors are born, copied and closed. */
#include "shim/hook_lifetime.h"

#include <errno.h>
#include <linux/close_range.h>
#include <stdarg.h>

#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/real.h"
#include "shim/runtime.h"

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

/* Is it certain enough that dup2() of it will succeed? One that was seen being born is open; others
 * are asked for, unless a filter may kill for that. */
static bool is_open(int fd)
{
	int error = errno;
	bool is;

	if (fd_table_kind(fd) != FD_UNKNOWN)
		return true;
	if (fd < 0 || atomic_load_explicit(&runtime.has_filter, memory_order_relaxed))
		return fd >= 0;
	is = real()->fcntl(fd, F_GETFD) >= 0;
	errno = error;
	return is;
}

/*
 * The target is forgotten before the real call: in the moment after it, another thread's recv on
 * the target already sees the new file, whose end is not the old connection's. A call that is bound
 * to fail leaves the target alone; should one fail all the same, the target is open and no longer
 * judged.
 */
void copy_begins(int fd, int copy, int flags)
{
	if (fd != copy && gate_find(copy) && !(flags & ~O_CLOEXEC) && is_open(fd))
		gate_close(copy);
}

int copy_ended(int fd, int copy)
{
	if (copy >= 0 && fd != copy)
		gate_copied(fd, copy);
	return copy;
}

HOOK(int, dup, (int fd))
{
	return copy_ended(fd, real()->dup(fd));
}

HOOK(int, dup2, (int fd, int copy))
{
	copy_begins(fd, copy, 0);
	return copy_ended(fd, real()->dup2(fd, copy));
}

HOOK(int, dup3, (int fd, int copy, int flags))
{
	copy_begins(fd, copy, flags);
	return copy_ended(fd, real()->dup3(fd, copy, flags));
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
	return command_copies(command) ? copy_ended(fd, result) : result;
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
	return command_copies(command) ? copy_ended(fd, result) : result;
}

HOOK(FILE *, fdopen, (int fd, const char *mode))
{
	FILE *stream = real()->fdopen(fd, mode);

	if (stream)
		gate_left_to_stdio(fd);
	return stream;
}
