/* SPDX-License-Identifier: MIT */
#include "shim/gate_option.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/cut.h"
#include "shim/exchange.h"
#include "shim/inside.h"
#include "shim/runtime.h"

void gate_so_error(int fd, int *error)
{
	struct connection *connection = fd_table_find(fd);
	uint64_t now_ns;

	if (!connection || process_is_vfork_child())
		return;
	if (exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT)) {
		int kept = errno;

		if (cut_answers(connection, fd))
			*error = errno;
		errno = kept;
		return;
	}
	now_ns = clock_now_ns();
	call_settle(connection,
			exchange_so_error(&connection->exchange, call_settings(connection), *error,
					now_ns),
			now_ns);
	if (*error && exchange_is_new_attempt(&connection->exchange))
		call_let_go(connection);
}

static bool is_stream(enum fd_kind kind)
{
	return kind == FD_STREAM || kind == FD_STREAM6;
}

void gate_receive_timeout(int fd, uint64_t timeout_ns)
{
	struct connection *connection = fd_table_find(fd);
	struct connection *stale = NULL;

	if (!runtime_is_judging())
		return;
	/* Set before connect: remembered in a connection that no rule judges yet. */
	if (!connection && timeout_ns && is_stream(fd_table_kind(fd)))
		connection = fd_table_connect(fd, &stale);
	call_end(stale);
	if (connection)
		exchange_set_receive_timeout(&connection->exchange, timeout_ns);
}
