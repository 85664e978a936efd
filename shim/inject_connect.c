/* SPDX-License-Identifier: MIT */
#include "shim/inject_connect.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/adoption.h"
#include "shim/attempt.h"
#include "shim/below.h"
#include "shim/call.h"
#include "shim/datagram_socket.h"
#include "shim/endpoint.h"
#include "shim/held_attempt.h"
#include "shim/inside.h"
#include "shim/runtime.h"
#include "shim/socket_ask.h"
#include "shim/socket_wait.h"
#include "shim/withheld.h"

static int connect_really(const struct attempt *attempt)
{
	return below()->connect(attempt->sight.fd, attempt->address, attempt->length);
}

/* A blocking connect: 0 when it is due, or what ends it before. EINPROGRESS: its own SO_SNDTIMEO.
 */
static int wait_until(const struct attempt *attempt, uint64_t due_ns, bool is_on_socket)
{
	const struct sight *sight = &attempt->sight;
	uint64_t own_ns = socket_timeout_ns(sight->fd, SO_SNDTIMEO);
	bool is_too_late = own_ns && sight->now_ns + own_ns < due_ns;

	if (is_too_late)
		due_ns = sight->now_ns + own_ns;
	if (!(is_on_socket ? held_sleep(sight->connection, sight->fd, due_ns, own_ns)
			   : socket_sleep(-1, due_ns, own_ns)))
		return EINTR;
	return is_too_late ? EINPROGRESS : 0;
}

/* Ends with `error` (0: established) when it is due; a blocking connect is here until then, or as
 * long as its own time allows. */
static int come_late(const struct attempt *attempt, int error)
{
	uint64_t due_ns = attempt->sight.now_ns + attempt->delay_ns;
	uint32_t generation = fd_table_generation(attempt->sight.connection);
	int ended;

	held_attempt_begin(attempt->sight.slot, due_ns, error);
	ended = attempt->sight.is_blocking
			? wait_until(attempt, due_ns, !error && !attempt->error)
			: EINPROGRESS;
	if (ended) {
		errno = ended;
		return -1;
	}
	/* Closed meanwhile, it may be another's. */
	if (fd_table_generation(attempt->sight.connection) == generation)
		held_attempt_end(attempt->sight.slot);
	errno = error;
	return error ? -1 : 0;
}

/* Of a real failure as well: it comes as late. It is held before it is made, for whoever waits
 * already is told from inside the real connect(). */
static int connect_late(const struct attempt *attempt)
{
	int kept = errno, result, error;

	if (attempt->error)
		return come_late(attempt, attempt->error);
	held_attempt_begin(attempt->sight.slot, attempt->sight.now_ns + attempt->delay_ns, 0);
	result = connect_really(attempt);
	error = result ? errno : 0;
	if (error == EINTR || error == EINPROGRESS || error == EALREADY)
		return result;
	if (error == EAGAIN || error == EADDRNOTAVAIL || error == EBADF || error == EISCONN) {
		held_attempt_end(attempt->sight.slot);
		return result;
	}
	if (!error)
		slot_set(attempt->sight.slot, SLOT_MADE);
	result = come_late(attempt, error);
	if (!result)
		errno = kept;
	return result;
}

static int connect_under_faults(struct attempt *attempt)
{
	attempt_meets_faults(attempt);
	if (attempt->delay_ns)
		return connect_late(attempt);
	if (!attempt->error)
		return connect_really(attempt);
	errno = attempt->error;
	return -1;
}

/* What gate_connected() does for those that it knows. */
static int tracked(struct connection *connection, uint32_t generation, int result)
{
	int error = result ? errno : 0;
	uint64_t now_ns = clock_now_ns();

	if (fd_table_generation(connection) == generation)
		call_settle(connection,
				exchange_connected(&connection->exchange,
						call_settings(connection), error, now_ns),
				now_ns);
	if (result)
		errno = error;
	return result;
}

/* The kernel refuses an address of the other family, and shall say so itself. */
static bool is_of_family(enum fd_kind kind, const struct sockaddr *address, socklen_t length)
{
	struct address peer;
	uint16_t port;

	return endpoint_read(address, length, &peer, &port) &&
	       kind == (endpoint_family(address) == AF_INET6 ? FD_STREAM6 : FD_STREAM);
}

static int connect_anew(struct attempt *attempt)
{
	bool is_ours = !attempt->sight.connection;
	uint32_t generation;
	int result;

	if (!attempt_begins(attempt))
		return connect_really(attempt);
	if (!is_ours)
		return connect_under_faults(attempt);
	generation = fd_table_generation(attempt->sight.connection);
	result = connect_under_faults(attempt);
	return tracked(attempt->sight.connection, generation, result);
}

/* 0 when it is due; or what connect() answers before. */
static int wait_again(const struct attempt *attempt, uint64_t due_ns)
{
	int error = EINPROGRESS;

	if (socket_is_blocking(attempt->sight.fd))
		error = wait_until(attempt, due_ns, true);
	return error == EINPROGRESS ? EALREADY : error;
}

/* A further connect() of an attempt that is under way. */
static int connect_again(const struct attempt *attempt)
{
	struct slot *slot = attempt->sight.slot;
	uint64_t due_ns = held_attempt_ns(slot, attempt->sight.now_ns);
	int error = due_ns ? wait_again(attempt, due_ns) : 0;

	if (!error)
		error = held_attempt_error(slot, clock_now_ns());
	if (!error)
		return held_attempt_was_made(slot) ? 0 : connect_really(attempt);
	errno = error;
	return -1;
}

static bool is_pending(const struct connection *connection)
{
	return exchange_has(&connection->exchange, EXCHANGE_PENDING);
}

/* The exchange has begun a new attempt since the slot was filled. */
static bool is_new(const struct slot *slot, const struct connection *connection)
{
	return !slot_is_valid(slot, connection) ||
	       atomic_load_explicit(&slot->attempt_ns, memory_order_relaxed) !=
			atomic_load_explicit(&connection->exchange.began_ns, memory_order_relaxed);
}

/* What is held of this socket is of a connection that is no more. */
static int disconnect(const struct attempt *attempt)
{
	int result = connect_really(attempt);

	if (!result)
		holds_release_descriptor(attempt->sight.fd);
	return result;
}

/* No attempt: only who it is that datagrams come from. */
static int connect_datagrams(const struct attempt *attempt)
{
	int result = connect_really(attempt);

	if (result == 0)
		datagram_peer_is(attempt->sight.fd, attempt->address, attempt->length);
	return result;
}

int inject_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct attempt attempt = { .sight.fd = fd, .address = address, .length = length };
	enum fd_kind kind;

	if (!runtime_is_judging() || inside_is(__builtin_frame_address(0)))
		return connect_really(&attempt);
	if (datagram_is(fd))
		return connect_datagrams(&attempt);
	if (endpoint_is_disconnect(address, length))
		return disconnect(&attempt);
	attempt.sight.now_ns = clock_now_ns();
	if (fault_rules_have_changed())
		adoption_refresh(attempt.sight.now_ns);
	attempt.sight.connection = fd_table_find(fd);
	kind = attempt.sight.connection ? attempt.sight.connection->kind : fd_table_kind(fd);
	if (!is_of_family(kind, address, length))
		return connect_really(&attempt);
	if (!attempt.sight.connection)
		return connect_anew(&attempt);
	attempt.sight.slot = slot_of(attempt.sight.connection);
	if (!is_pending(attempt.sight.connection))
		return connect_really(&attempt);
	if (is_new(attempt.sight.slot, attempt.sight.connection))
		return connect_anew(&attempt);
	return connect_again(&attempt);
}

bool inject_fast_open(int fd, const struct sockaddr *address, socklen_t length)
{
	struct attempt attempt = { .sight.fd = fd, .address = address, .length = length };
	struct connection *connection = fd_table_find(fd);
	enum fd_kind kind = connection ? connection->kind : fd_table_kind(fd);
	bool is_ours = !connection;

	if (!runtime_is_judging() || !is_of_family(kind, address, length) ||
			(connection && (!is_pending(connection) ||
						!is_new(slot_of(connection), connection))))
		return true;
	attempt.sight.now_ns = clock_now_ns();
	attempt.sight.connection = connection;
	if (!attempt_begins(&attempt))
		return true;
	attempt_meets_errors(&attempt);
	if (!attempt.error)
		return true;
	errno = attempt.error;
	if (is_ours)
		tracked(attempt.sight.connection,
				fd_table_generation(attempt.sight.connection), -1);
	return false;
}
