/* SPDX-License-Identifier: MIT */
/* What a program sets and asks of a socket: timeouts, the pending error, its peer, an end to one
 * side. */
#include <stdint.h>
#include <string.h>

#include "shim/gate_lifetime.h"
#include "shim/gate_option.h"
#include "shim/real.h"

#define SECOND_NS 1000000000ull

/* Seconds and microseconds, of 64 bits each in both forms of the option on 64-bit machines. */
static uint64_t timeout_ns(const void *value)
{
	int64_t parts[2];

	memcpy(parts, value, sizeof(parts));
	if (parts[0] < 0 || (uint64_t)parts[0] >= UINT64_MAX / SECOND_NS)
		return 0;
	return (uint64_t)parts[0] * SECOND_NS + (uint64_t)parts[1] * 1000;
}

HOOK(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t size))
{
	int result = real()->setsockopt(fd, level, option, value, size);

	if (result == 0 && level == SOL_SOCKET &&
			(option == SO_RCVTIMEO_OLD || option == SO_RCVTIMEO_NEW))
		gate_receive_timeout(fd, timeout_ns(value));
	return result;
}

HOOK(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *size))
{
	int result = real()->getsockopt(fd, level, option, value, size);

	if (result == 0 && level == SOL_SOCKET && option == SO_ERROR && *size == sizeof(int))
		gate_so_error(fd, value);
	return result;
}

HOOK(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length))
{
	return real()->getpeername(fd, address, length);
}

HOOK(int, shutdown, (int fd, int how))
{
	gate_shut(fd, how);
	return real()->shutdown(fd, how);
}
