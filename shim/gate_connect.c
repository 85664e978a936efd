/* SPDX-License-Identifier: MIT */
#include "shim/gate_connect.h"

#include <errno.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/admission.h"
#include "shim/call.h"
#include "shim/deadline.h"
#include "shim/endpoint.h"
#include "shim/inject.h"
#include "shim/inside.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/runtime.h"
#include "shim/timed.h"
#include "shim/timer.h"

/* The cell of an endpoint that falls under a rule; NULL: none is left. */
static struct cell *find_cell(const struct rule *rule, struct endpoint *endpoint, uint64_t now_ns,
		uint64_t *ret_cell_hash)
{
	runtime_matched(rule);
	if (!target_wants_names(&rule->target))
		endpoint->host = NULL;
	return runtime_cell(rule, CELL_CONNECTION, endpoint, now_ns, ret_cell_hash);
}

/* The connection that stands for fd from now on; NULL where the pool is empty. */
static struct connection *track(int fd, const struct rule *rule, struct cell *cell,
		uint64_t cell_hash)
{
	struct connection *connection = fd_table_find(fd);
	struct connection *stale = NULL;

	if (!connection)
		connection = fd_table_connect(fd, &stale);
	call_end(stale);
	if (connection)
		call_set_judge(connection, (struct judge){ rule, cell }, cell_hash);
	return connection;
}

/* connect() on a connection that we know. True where nothing more is to be asked. */
__attribute__((noinline)) static bool connect_again(struct gate *gate,
		struct connection *connection, const struct sockaddr *address, socklen_t length)
{
	gate->is_disconnect = endpoint_is_disconnect(address, length);
	if (!gate->is_disconnect && exchange_is_new_attempt(&connection->exchange))
		return false;
	gate_hold(gate, connection);
	if (deadline_applies(connection))
		timed_connect(connection, gate->fd, &gate->bound);
	return true;
}

static bool refuse(const struct rule *rule, struct cell *cell, uint64_t now_ns)
{
	struct breaker breaker = runtime_breaker(rule, cell);

	timer_watch_open(rule, &breaker, now_ns);
	if (runtime.observe)
		return true;
	errno = rule->settings.refuse_errno;
	return false;
}

/* What stood for fd is over: its new peer is not judged. */
__attribute__((noinline)) static bool connect_unjudged(int fd, const struct connection *connection)
{
	if (connection)
		call_end(fd_table_set(fd, connection->kind));
	return true;
}

/* Under a rule, which some connects of some programs are: apart, with the frame that it takes. */
__attribute__((noinline)) static bool connect_judged(struct gate *gate,
		struct connection *connection, const struct rule *rule, struct endpoint *endpoint)
{
	uint64_t now_ns = clock_now_ns();
	struct asking asking = { .rule = rule, .fd = gate->fd, .is_connect = true };
	struct admitted admitted;

	gate->is_attempt = true;
	asking.cell = find_cell(rule, endpoint, now_ns, &asking.cell_hash);
	if (!asking.cell)
		return connect_unjudged(gate->fd, connection);
	/* An attempt that ended where nobody saw it shall not stand in its own successor's way. */
	if (connection)
		call_let_go(connection);
	if (!admission_ask(&asking, now_ns, &admitted))
		return refuse(rule, asking.cell, now_ns);
	connection = track(gate->fd, rule, asking.cell, asking.cell_hash);
	if (!connection) {
		admission_return(&asking, &admitted);
		return true;
	}
	call_begin(connection, admitted.ticket);
	call_hold(connection, admitted.place);
	if (rule->settings.timeout_ns || deadline_applies(connection))
		timed_begin(connection, gate->fd);
	exchange_begin(&connection->exchange, admitted.now_ns);
	gate_hold(gate, connection);
	if (deadline_applies(connection)) {
		timed_watch(connection);
		timed_connect(connection, gate->fd, &gate->bound);
	}
	return true;
}

__attribute__((noinline)) static bool connect_named(struct gate *gate,
		struct connection *connection, struct endpoint *endpoint)
{
	char host[HOST_SIZE];
	const struct rule *rule;

	if (names_find(endpoint->address, host))
		endpoint->host = host;
	rule = config_match(&runtime.config, endpoint);
	return rule ? connect_judged(gate, connection, rule, endpoint)
		    : connect_unjudged(gate->fd, connection);
}

const struct rule *gate_judge(const struct sockaddr *address, socklen_t length, uint64_t now_ns,
		struct cell **ret_cell, uint64_t *ret_cell_hash)
{
	char host[HOST_SIZE];
	struct address peer;
	struct endpoint endpoint = { .address = &peer };
	const struct rule *rule;

	if (!endpoint_read(address, length, &peer, &endpoint.port))
		return NULL;
	if (runtime.config.wants_names && names_find(&peer, host))
		endpoint.host = host;
	rule = config_match(&runtime.config, &endpoint);
	if (!rule)
		return NULL;
	if (!target_wants_names(&rule->target))
		endpoint.host = NULL;
	*ret_cell = runtime_cell(rule, CELL_CONNECTION, &endpoint, now_ns, ret_cell_hash);
	return *ret_cell ? rule : NULL;
}

/* The kernel refuses an address of the other family, and shall say so itself. */
static bool is_of_family(int fd, const struct connection *connection, sa_family_t family)
{
	enum fd_kind kind = connection ? connection->kind : fd_table_kind(fd);

	return kind == (family == AF_INET6 ? FD_STREAM6 : FD_STREAM);
}

/* Flat: to call what it takes to find no rule was a sixth of the time. What is rare stays out of
 * line, here and in the modules above. */
__attribute__((flatten)) bool gate_connect(struct gate *gate, int fd,
		const struct sockaddr *address, socklen_t length)
{
	struct connection *connection = fd_table_find(fd);
	struct address peer;
	struct endpoint endpoint = { .address = &peer };
	const struct rule *rule;

	*gate = (struct gate){ .fd = fd };
	if (!runtime_is_judging() || inside_is(__builtin_frame_address(0)))
		return true;
	inject_look();
	if (open_lookup_rule())
		open_lookup_leave();
	if (connection && deadline_has_passed(connection) &&
			!endpoint_is_disconnect(address, length))
		return timed_answer(connection, fd) != TIMED_ANSWERED;
	if (connection && connect_again(gate, connection, address, length))
		return true;
	if ((!connection && fd_table_kind(fd) == FD_OTHER) ||
			!endpoint_read(address, length, &peer, &endpoint.port) ||
			!is_of_family(fd, connection, endpoint_family(address)))
		return true;
	if (runtime.config.wants_names)
		return connect_named(gate, connection, &endpoint);
	rule = config_match(&runtime.config, &endpoint);
	if (rule)
		return connect_judged(gate, connection, rule, &endpoint);
	return !connection || connect_unjudged(fd, connection);
}

bool gate_connects_again(struct gate *gate)
{
	return gate_is_held(gate) &&
			timed_connect_goes_on(gate->connection, gate->fd, &gate->bound);
}

int gate_connected(struct gate *gate, int result)
{
	struct connection *connection = gate->connection;
	int error = result ? errno : 0;
	uint64_t now_ns;

	if (!gate_is_held(gate))
		return result;
	if (deadline_applies(connection) && !gate->is_disconnect) {
		result = timed_connected(connection, gate->fd, &gate->bound, result);
		error = result ? errno : 0;
	}
	/* Where the call goes on, this is only the beginning of a silence. */
	now_ns = result || call_settings(connection)->guard == GUARD_CONNECT ? clock_now_ns()
									     : clock_coarse_ns();
	if (gate->is_disconnect) {
		if (!result)
			call_end(fd_table_set(gate->fd, connection->kind));
	} else {
		call_settle(connection, exchange_connected(&connection->exchange,
				call_settings(connection), error, now_ns), now_ns);
		if (result && exchange_is_new_attempt(&connection->exchange))
			call_let_go(connection);
	}
	if (result)
		errno = error;
	return result;
}

ssize_t gate_fast_opened(struct gate *gate, struct bytes bytes, ssize_t result)
{
	int error = errno;

	gate_connected(gate, result < 0 ? -1 : 0);
	if (!gate_is_held(gate))
		return result;
	gate->bytes = bytes;
	errno = error;
	return result < 0 ? result : gate_sent(gate, result);
}
