/* SPDX-License-Identifier: MIT */
#include "shim/cut.h"

#include <errno.h>
#include <netinet/in.h>

#include "shim/call.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/timed.h"

static bool may_call(void)
{
	return !atomic_load_explicit(&runtime.has_filter, memory_order_relaxed);
}

static bool is_stale(int fd)
{
	int error = errno;
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	if (!may_call())
		return false;
	if (real()->getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size))
		errno = error;
	return protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP;
}

static bool cut_holds(int fd)
{
	if (is_stale(fd)) {
		call_end(fd_table_set(fd, FD_OTHER));
		return false;
	}
	errno = ECONNRESET;
	return true;
}

bool cut_answers(struct connection *connection, int fd)
{
	if (exchange_has(&connection->exchange, EXCHANGE_CUT))
		return cut_holds(fd);
	return timed_answer(connection, fd) == TIMED_ANSWERED;
}

bool cut_connection(struct connection *connection, int fd)
{
	if (!cut_holds(fd))
		return false;
	exchange_cut(&connection->exchange);
	/* Closed meanwhile, by another thread or a signal handler: the next connection that got the
	 * memory, or the number, has done nothing. */
	if (fd_table_find(fd) != connection) {
		exchange_uncut(&connection->exchange);
		errno = ECONNRESET;
		return true;
	}
	if (may_call())
		real()->shutdown(fd, SHUT_RD);
	errno = ECONNRESET;
	return true;
}
