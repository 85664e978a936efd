/* SPDX-License-Identifier: MIT */
#include "shim/gate_lifetime.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "shim/backtrace.h"
#include "shim/call.h"
#include "shim/datagram_socket.h"
#include "shim/deadline.h"
#include "shim/epoll_set.h"
#include "shim/holder.h"
#include "shim/inject.h"
#include "shim/inject_slot.h"
#include "shim/inside.h"
#include "shim/lookup.h"
#include "shim/resolve.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "shim/timer.h"
#include "shim/withheld.h"

static enum fd_kind datagram_kind(int domain, int type)
{
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_DGRAM)
		return FD_OTHER;
	return domain == AF_INET || domain == AF_INET6 ? FD_DATAGRAM : FD_OTHER;
}

void gate_born(int fd, int domain, int type)
{
	enum fd_kind kind = FD_OTHER;

	if (!runtime_is_judging())
		return;
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM)
		kind = domain == AF_INET ? FD_STREAM : domain == AF_INET6 ? FD_STREAM6 : FD_OTHER;
	else
		kind = datagram_kind(domain, type);
	/* A connection that still stands there was closed out of our sight. */
	call_end(fd_table_set(fd, kind));
	if (kind == FD_DATAGRAM && atomic_load_explicit(&inject_is_on, memory_order_acquire))
		datagram_begins(fd);
}

void gate_born_other(int fd)
{
	if (runtime_is_judging())
		call_end(fd_table_set(fd, FD_OTHER));
}

void gate_born_set(int set)
{
	gate_born_other(set);
	if (runtime_is_judging() && holds_are_recorded())
		epoll_set_born(set);
}

void gate_close(int fd)
{
	if (fd_table_kind(fd) == FD_OTHER || process_is_vfork_child())
		return;
	lookup_settle();
	holds_release_copy(fd);
	call_end(fd_table_set(fd, FD_OTHER));
}

void gate_close_range(unsigned int first, unsigned int last)
{
	if (process_is_vfork_child())
		return;
	for (unsigned int fd = first; fd <= last && fd < fd_table.size; fd++) {
		holds_release_copy((int)fd);
		call_end(fd_table_set((int)fd, FD_OTHER));
	}
}

uint32_t gate_copy_begins(int fd, int copy)
{
	if (fd == copy || !fd_table_find(copy) || process_is_vfork_child())
		return FD_OTHER;
	lookup_settle();
	holds_release_copy(copy);
	return fd_table_take(copy);
}

void gate_not_copied(int copy, uint32_t taken)
{
	if (taken != FD_OTHER)
		call_end(fd_table_put_back(copy, taken));
}

void gate_copied(int fd, int copy, uint32_t taken)
{
	call_end(fd_table_drop(taken));
	if (fd_table_kind(fd) == FD_OTHER && fd_table_kind(copy) == FD_OTHER)
		return;
	if (runtime_is_judging())
		call_end(fd_table_copy(fd, copy));
}

void gate_shut(int fd, int how)
{
	struct connection *connection = fd_table_find(fd);
	uint64_t now_ns;

	if (!connection || process_is_vfork_child() ||
			!exchange_has(&connection->exchange,
					EXCHANGE_PENDING | EXCHANGE_ESTABLISHED))
		return;
	slot_shut(connection, how);
	now_ns = clock_now_ns();
	call_settle(connection,
			exchange_shutdown(&connection->exchange, call_settings(connection), how,
					now_ns),
			now_ns);
}

void gate_left_to_stdio(int fd)
{
	struct connection *connection = fd_table_find(fd);

	if (process_is_vfork_child())
		return;
	if (connection)
		call_settle(connection, exchange_left_to_stdio(&connection->exchange),
				clock_now_ns());
	/* Its end will not be seen, connected or not. */
	call_end(fd_table_set(fd, FD_OTHER));
}

static void end_with_process(struct connection *connection)
{
	uint64_t now_ns = clock_now_ns();

	call_settle(connection, exchange_closed(&connection->exchange, call_settings(connection),
			now_ns), now_ns);
}

void gate_exit(void)
{
	if (!runtime_is_judging())
		return;
	lookup_settle_all();
	/* A child may go on with the same epoll sets. */
	holds_release();
	fd_table_each(end_with_process);
	holder_leave();
}

/* For the circuit only: the call goes on, and keeps its place until it ends. */
static void cancel(struct connection *connection)
{
	struct call call;

	if (!exchange_has(&connection->exchange, EXCHANGE_OPEN) ||
			exchange_cancelled(&connection->exchange).ended == OUTCOME_NONE)
		return;
	call = call_of(connection);
	call_report(&call, OUTCOME_CANCELLED, clock_now_ns());
}

/* The parent reports what both copies lose, holds the places, and ends what takes too long. */
static void forget(struct connection *connection)
{
	bool is_open = exchange_has(&connection->exchange, EXCHANGE_OPEN);

	deadline_forget(connection);
	call_forget(connection);
	if (is_open)
		exchange_cancelled(&connection->exchange);
}

void gate_fork_parent(void)
{
	int error = errno;

	if (runtime_is_judging())
		fd_table_each(cancel);
	holds_share();
	errno = error;
}

void gate_fork_child(void)
{
	/* A fork inside a vfork child makes a process with memory of its own. */
	inside_vfork = INSIDE_NO_VFORK;
	if (!runtime_is_judging())
		return;
	runtime_forked();
	backtrace_forked();
	holder_forked();
	timer_forget();
	fd_table_forget_pins();
	hold_forked();
	thread_forget();
	resolve_forked();
	lookup_forget();
	fd_table_each(forget);
}
