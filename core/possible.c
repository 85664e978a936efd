/* SPDX-License-Identifier: MIT */
#include "core/possible.h"

#include <errno.h>
#include <string.h>

#include "core/error_set.h"
#include "core/format.h"
#include "core/text.h"

#define C POSSIBLE_CONNECT
#define S POSSIBLE_SEND
#define R POSSIBLE_RECV
#define NAMES_LISTED 3

/* In the order in which messages name them. What comes of routes, ICMP and devices is left behind
 * on the socket, and the next call of any kind fails with it; a connect of a datagram socket asks
 * the route and nobody else. */
static const struct {
	int error;
	unsigned int stream, datagram;
	bool of_blocking, of_non_blocking;
} table[] = {
	{ ECONNREFUSED, C | S | R, S | R, true, true },
	{ ECONNRESET, C | S | R, 0, true, true },
	{ ETIMEDOUT, C | S | R, 0, true, true },
	{ EHOSTUNREACH, C | S | R, C | S | R, true, true },
	{ ENETUNREACH, C | S | R, C | S | R, true, true },
	{ EPIPE, S, 0, true, true },
	{ EHOSTDOWN, C | S | R, S | R, true, true },
	{ ENETDOWN, C | S | R, C | S | R, true, true },
	{ ENONET, C | S | R, S | R, true, true },
	{ ENOPROTOOPT, C | S | R, S | R, true, true },
	{ EPROTO, C | S | R, S | R, true, true },
	{ EOPNOTSUPP, C | S | R, S | R, true, true },
	{ ECONNABORTED, C, 0, true, true },
	{ EMSGSIZE, 0, S | R, true, true },
	{ EADDRNOTAVAIL, C, C, true, true },
	{ EADDRINUSE, C, 0, true, true },
	{ EACCES, C | S | R, C | S | R, true, true },
	{ EPERM, C, C | S, true, true },
	{ ENOTCONN, R, 0, true, true },
	{ ENOBUFS, C | S, C | S, true, true },
	{ ENOMEM, C | S | R, C | S | R, true, true },
	{ EAGAIN, C | S | R, S | R, true, true },
	{ EINTR, C | S | R, S | R, true, false },
	{ EINPROGRESS, C, 0, false, true },
	{ EALREADY, C, 0, false, true },
};

#undef C
#undef S
#undef R

#define COUNT (sizeof(table) / sizeof(table[0]))

unsigned int possible_calls(unsigned int calls, bool is_datagram, bool blocks, int error)
{
	for (size_t i = 0; i < COUNT; i++) {
		if (table[i].error != error)
			continue;
		if (!(blocks ? table[i].of_blocking : table[i].of_non_blocking))
			return 0;
		return calls & (is_datagram ? table[i].datagram : table[i].stream);
	}
	return 0;
}

/* The names of rows that one of `calls` can come to, of those that end a call. */
static size_t collect(unsigned int calls, bool is_datagram, const char *ret[COUNT])
{
	size_t count = 0;

	for (size_t i = 0; i < COUNT; i++) {
		const char *name = error_name(table[i].error);

		if (name && calls & (is_datagram ? table[i].datagram : table[i].stream))
			ret[count++] = name;
	}
	return count;
}

const char *possible_nearest(unsigned int calls, bool is_datagram, const char *name)
{
	const char *names[COUNT];
	size_t count = collect(calls, is_datagram, names);

	return text_nearest(name, names, count);
}

void possible_list(unsigned int calls, bool is_datagram, char *ret, size_t size)
{
	const char *names[COUNT];
	size_t count = collect(calls, is_datagram, names), used = 0;

	text_copy(ret, size, "");
	for (size_t i = 0; i < count && i < NAMES_LISTED; i++)
		used += text_format(ret + used, size - used, "%s%s",
				i == 0 ? "" : i + 1 < NAMES_LISTED ? ", " : " or ", names[i]);
}
