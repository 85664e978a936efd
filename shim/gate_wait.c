/* SPDX-License-Identifier: MIT */
#include "shim/gate_wait.h"

#include "core/clock.h"
#include "shim/call.h"
#include "shim/deadline.h"
#include "shim/exchange.h"
#include "shim/inside.h"
#include "shim/timed.h"

uint64_t gate_wait_clock(void)
{
	if (!atomic_load_explicit(&fd_table.live, memory_order_relaxed))
		return 0;
	return clock_coarse_ns();
}

void gate_wait_begins(int fd)
{
	struct connection *connection = fd_table_find(fd);

	if (!connection || process_is_vfork_child() || !deadline_applies(connection))
		return;
	exchange_wait_begins(&connection->exchange, clock_now_ns());
	timed_expect(connection);
}

void gate_waited(struct connection *connection, uint64_t began_ns)
{
	uint64_t now_ns;

	if (!began_ns || !exchange_times_receive(&connection->exchange))
		return;
	now_ns = clock_coarse_ns();
	call_settle(connection, exchange_waited(&connection->exchange, began_ns, now_ns), now_ns);
}
