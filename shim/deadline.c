/* SPDX-License-Identifier: MIT */
#include "shim/deadline.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/exchange_awaited.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "shim/withheld.h"

#define NS_PER_MS 1000000ull
#define NEVER_NS  UINT64_MAX

/* The kernel's numbers of states (netinet/tcp.h and linux/tcp.h do not go together). */
#define STATE_SYN_SENT 2
#define STATE_TIME_WAIT 6 /* in this and all above it the peer has ended its side, or all */

/* No connection ever had a deadline: the timer thread looks at none. */
static _Atomic bool is_needed;

static bool may_call(void)
{
	return !own_calls_are_forbidden() && !process_is_vfork_child();
}

static uint64_t timeout_of(const struct connection *connection)
{
	return atomic_load_explicit(&connection->deadline.timeout_ns, memory_order_relaxed);
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	uint32_t size = sizeof(cookie);

	long result;

	if (!own_calls_begin())
		return 0;
	result = raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, (long)&cookie, (long)&size,
			0);
	own_calls_end();
	return result ? 0 : cookie;
}

static bool is_same_socket(const struct connection *connection, int fd)
{
	uint64_t cookie = atomic_load_explicit(&connection->deadline.cookie, memory_order_relaxed);

	return cookie && cookie_of(fd) == cookie;
}

bool deadline_begin(struct connection *connection, int fd)
{
	struct deadline *deadline = &connection->deadline;
	uint64_t wanted_ns = call_settings(connection)->timeout_ns;
	uint64_t timeout_ns = may_call() ? wanted_ns : 0;

	atomic_store_explicit(&deadline->cookie, timeout_ns ? cookie_of(fd) : 0,
			memory_order_relaxed);
	atomic_store_explicit(&deadline->asked_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->is_pushing, false, memory_order_relaxed);
	atomic_store_explicit(&deadline->received_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->knows_received, true, memory_order_relaxed);
	if (timeout_ns)
		exchange_set(&connection->exchange, EXCHANGE_DEADLINE);
	else
		exchange_clear(&connection->exchange, EXCHANGE_DEADLINE);
	if (timeout_ns)
		atomic_store_explicit(&is_needed, true, memory_order_relaxed);
	/* seq_cst, as in all that orders connections against the timer's state: we are there and
	 * then look whether it runs, it says that it ends and then looks for us. */
	atomic_store_explicit(&deadline->timeout_ns, timeout_ns, memory_order_seq_cst);
	return timeout_ns == wanted_ns;
}

uint64_t deadline_ns(const struct connection *connection)
{
	uint64_t timeout_ns = timeout_of(connection);
	uint64_t since_ns = timeout_ns ? exchange_awaited_since_ns(&connection->exchange) : 0;

	return since_ns ? since_ns + timeout_ns : 0;
}

bool deadline_holds(const struct connection *connection, int fd)
{
	return !may_call() || is_same_socket(connection, fd);
}

/* When to ask the kernel about a call whose deadline is that: at a quarter of its time whether all
 * that was sent has reached the peer, each quarter while not, and when it has passed. */
static uint64_t question_ns(const struct connection *connection, uint64_t deadline_ns)
{
	uint64_t timeout_ns = timeout_of(connection), quarter_ns = timeout_ns / 4;
	uint64_t first_ns = deadline_ns - timeout_ns + quarter_ns, next_ns = deadline_ns;
	uint64_t asked_ns = atomic_load_explicit(&connection->deadline.asked_ns,
			memory_order_relaxed);

	if (exchange_has(&connection->exchange, EXCHANGE_PENDING))
		return deadline_ns;
	if (atomic_load_explicit(&connection->deadline.is_pushing, memory_order_relaxed))
		next_ns = asked_ns + quarter_ns;
	else if (asked_ns < first_ns)
		next_ns = first_ns;
	return next_ns < deadline_ns ? next_ns : deadline_ns;
}

/* False where it is no TCP socket that tells. */
static bool kernel_ask(int fd, struct tcp_info *ret)
{
	uint32_t size = sizeof(*ret);

	return !raw_syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, (long)ret, (long)&size, 0);
}

static bool has_unread(int fd)
{
	int size = 0;

	return !raw_syscall(SYS_ioctl, fd, SIOCINQ, (long)&size, 0, 0, 0) && size > 0;
}

/*
 * Has the kernel got something through to the peer since it was asked last? While it holds bytes
 * back, or a thread is inside a send, that counts as taken now; where it was all, when the last of
 * it was acknowledged. Asked for the first time, and too late, it gets the benefit of the doubt.
 */
static void learn(struct connection *connection, const struct tcp_info *info, uint64_t due_ns,
		uint64_t now_ns)
{
	struct deadline *deadline = &connection->deadline;
	uint64_t since_ns = due_ns - timeout_of(connection);
	bool is_first = atomic_load_explicit(&deadline->asked_ns, memory_order_relaxed) < since_ns;
	bool was_pushing = atomic_load_explicit(&deadline->is_pushing, memory_order_relaxed);
	bool is_pushing = info->tcpi_notsent_bytes ||
			atomic_load_explicit(&deadline->senders, memory_order_relaxed);
	bool has_moved = is_first ? due_ns <= now_ns :
			atomic_load_explicit(&deadline->acknowledged_bytes,
				memory_order_relaxed) != (uint32_t)info->tcpi_bytes_acked;

	atomic_store_explicit(&deadline->asked_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&deadline->is_pushing, is_pushing, memory_order_relaxed);
	atomic_store_explicit(&deadline->acknowledged_bytes, (uint32_t)info->tcpi_bytes_acked,
			memory_order_relaxed);
	if (has_moved && is_pushing)
		exchange_moved(&connection->exchange, now_ns);
	else if (has_moved && was_pushing)
		exchange_moved(&connection->exchange, clock_elapsed_ns(
				info->tcpi_last_ack_recv * NS_PER_MS, now_ns));
}

/* Since the call began; into the buffer of a recv that waits for more of it (MSG_WAITALL), too. */
static bool has_received(const struct deadline *deadline, const struct tcp_info *info)
{
	return atomic_load_explicit(&deadline->knows_received, memory_order_relaxed) &&
	       atomic_load_explicit(&deadline->received_bytes, memory_order_relaxed) !=
			       (uint32_t)info->tcpi_bytes_received;
}

/* Does the peer owe something by what the kernel knows? The program may not have looked yet; what
 * is held back from it, it cannot see. */
static bool peer_owes(const struct connection *connection, int fd, const struct tcp_info *info,
		uint64_t now_ns)
{
	uint32_t flags = exchange_flags(&connection->exchange);

	if (withheld_ask(fd, 0, now_ns).in_ns > now_ns)
		return true;
	if (flags & EXCHANGE_PENDING)
		return info->tcpi_state == STATE_SYN_SENT;
	if (info->tcpi_state >= STATE_TIME_WAIT)
		return false;
	/* Of a handshake much comes that is no answer. */
	if (!exchange_flags_await_tls(flags) && has_received(&connection->deadline, info))
		return false;
	return !has_unread(fd);
}

/*
 * Of a pinned connection: 0 where the deadline of its open call has passed and nothing speaks
 * against ending it, otherwise when to look again.
 */
static uint64_t look(struct connection *connection, uint64_t now_ns)
{
	uint64_t due_ns = deadline_ns(connection);
	struct tcp_info info = { 0 };
	int fd;

	if (!due_ns)
		return NEVER_NS;
	if (question_ns(connection, due_ns) > now_ns)
		return question_ns(connection, due_ns);
	fd = fd_table_descriptor(connection);
	if (fd < 0 || !is_same_socket(connection, fd))
		return NEVER_NS;
	if (!kernel_ask(fd, &info))
		return due_ns > now_ns ? due_ns : 0;
	learn(connection, &info, due_ns, now_ns);
	due_ns = deadline_ns(connection);
	if (due_ns > now_ns)
		return question_ns(connection, due_ns);
	if (due_ns && peer_owes(connection, fd, &info, now_ns))
		return 0;
	exchange_moved(&connection->exchange, now_ns);
	return now_ns + timeout_of(connection) / 4;
}

/* Ends the open call if its deadline has passed, which is looked at again once it is certain that
 * this call will be ended and no later one. */
static bool end_call(struct connection *connection, uint64_t now_ns, struct call *ret)
{
	struct exchange *exchange = &connection->exchange;
	uint64_t due_ns;

	if (!exchange_expiring(exchange))
		return false;
	due_ns = deadline_ns(connection);
	if (!due_ns || due_ns > now_ns)
		return false;
	*ret = call_of(connection);
	return exchange_expire(exchange, !runtime.observe).ended != OUTCOME_NONE;
}

/* A shutdown of either side breaks an attempt off. */
static bool is_connecting(int fd)
{
	struct tcp_info info = { 0 };

	return kernel_ask(fd, &info) && info.tcpi_state == STATE_SYN_SENT;
}

/* Of a pinned connection whose deadline has passed. */
static void shut(const struct connection *connection)
{
	int fd = fd_table_descriptor(connection);
	bool is_sending;

	if (fd < 0 || !is_same_socket(connection, fd))
		return;
	is_sending = atomic_load_explicit(&connection->deadline.senders, memory_order_seq_cst);
	if (is_sending && is_connecting(fd))
		return;
	raw_syscall(SYS_shutdown, fd, is_sending ? SHUT_RD : SHUT_RDWR, 0, 0, 0, 0);
}

static void pin_and_shut(struct connection *connection)
{
	if (!fd_table_pin(connection))
		return;
	/* Unless it was closed meanwhile, and is another. */
	if (deadline_has_passed(connection))
		shut(connection);
	fd_table_unpin(connection);
}

/*
 * When to look again. No signal handler runs on this thread. It is counted before anybody is woken,
 * who might end the process; and while it is, which may write a log, nobody has to wait for us.
 */
static uint64_t serve(struct connection *connection, uint64_t now_ns)
{
	struct call call;
	uint64_t next_ns;
	bool has_ended;

	next_ns = look(connection, now_ns);
	has_ended = next_ns == 0 && end_call(connection, now_ns, &call);
	fd_table_unpin(connection);
	if (has_ended) {
		call_report(&call, OUTCOME_TIMEOUT, now_ns);
		pin_and_shut(connection);
	}
	return next_ns ? next_ns : NEVER_NS;
}

void deadline_enforce(struct connection *connection, uint64_t now_ns)
{
	uint64_t signals, due_ns = deadline_ns(connection);

	if (!due_ns || due_ns > now_ns || process_is_vfork_child() || !own_calls_begin())
		return;
	signals = thread_block_signals();
	if (fd_table_pin(connection))
		serve(connection, now_ns);
	thread_restore_signals(signals);
	own_calls_end();
}

void deadline_call_begins(struct connection *connection, int fd)
{
	struct deadline *deadline = &connection->deadline;
	struct tcp_info info = { 0 };
	bool knows = false;

	if (own_calls_begin()) {
		knows = kernel_ask(fd, &info);
		own_calls_end();
	}
	atomic_store_explicit(&deadline->received_bytes, (uint32_t)info.tcpi_bytes_received,
			memory_order_relaxed);
	atomic_store_explicit(&deadline->knows_received, knows, memory_order_relaxed);
}

bool deadline_send_begins(struct connection *connection)
{
	uint32_t flags;

	atomic_fetch_add_explicit(&connection->deadline.senders, 1, memory_order_seq_cst);
	flags = atomic_load_explicit(&connection->exchange.flags, memory_order_seq_cst);
	if (!(flags & EXCHANGE_TIMED_OUT))
		return true;
	/* Whoever shuts may have seen this one in it, and left the rest to it. */
	deadline_send_ends(connection);
	return false;
}

void deadline_send_ends(struct connection *connection)
{
	uint32_t senders, flags;
	uint64_t signals;

	senders = atomic_fetch_sub_explicit(&connection->deadline.senders, 1, memory_order_seq_cst);
	/* Closed and used anew in this very moment: that count was never ours. */
	if (senders == 0)
		atomic_fetch_add_explicit(&connection->deadline.senders, 1, memory_order_relaxed);
	flags = atomic_load_explicit(&connection->exchange.flags, memory_order_seq_cst);
	if (senders != 1 || !(flags & EXCHANGE_TIMED_OUT) || process_is_vfork_child() ||
			!own_calls_begin())
		return;
	signals = thread_block_signals();
	pin_and_shut(connection);
	thread_restore_signals(signals);
	own_calls_end();
}

/* Is it in use, and has it deadlines? Then it is pinned. */
static bool pin_where_needed(struct connection *connection)
{
	if (!fd_table_pin(connection))
		return false;
	if (atomic_load_explicit(&connection->deadline.timeout_ns, memory_order_seq_cst))
		return true;
	fd_table_unpin(connection);
	return false;
}

uint64_t deadlines_serve(uint64_t now_ns)
{
	struct connection *connection;
	uint64_t earliest_ns = 0, next_ns;

	if (!atomic_load_explicit(&is_needed, memory_order_relaxed) || !own_calls_begin())
		return 0;
	for (uint32_t i = 0; (connection = fd_table_at(i)) != NULL; i++) {
		if (!pin_where_needed(connection))
			continue;
		next_ns = serve(connection, now_ns);
		if (!earliest_ns || next_ns < earliest_ns)
			earliest_ns = next_ns;
	}
	own_calls_end();
	return earliest_ns;
}

bool deadlines_exist(void)
{
	struct connection *connection;

	for (uint32_t i = 0; (connection = fd_table_at(i)) != NULL; i++) {
		if (!pin_where_needed(connection))
			continue;
		fd_table_unpin(connection);
		return true;
	}
	return false;
}

void deadline_forget(struct connection *connection)
{
	atomic_store_explicit(&connection->deadline.timeout_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&connection->deadline.senders, 0, memory_order_relaxed);
	exchange_clear(&connection->exchange, EXCHANGE_DEADLINE);
}
