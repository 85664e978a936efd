/* SPDX-License-Identifier: MIT */
#include "shim/cut.h"

#include <errno.h>
#include <netinet/in.h>

#include "shim/call.h"
#include "shim/own_call.h"
#include "shim/real.h"
#include "shim/timed.h"

static bool is_stale(int fd)
{
	int error = errno;
	int protocol = IPPROTO_TCP;
	socklen_t size = sizeof(protocol);

	if (!own_calls_begin())
		return false;
	if (real()->getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size)) {
		protocol = 0;
		errno = error;
	}
	own_calls_end();
	return protocol != IPPROTO_TCP && protocol != IPPROTO_MPTCP;
}

static void wake(int fd)
{
	if (!own_calls_begin())
		return;
	real()->shutdown(fd, SHUT_RD);
	own_calls_end();
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
	wake(fd);
	errno = ECONNRESET;
	return true;
}
