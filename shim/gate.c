/* SPDX-License-Identifier: MIT */
#include "shim/gate.h"

#include <errno.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/call.h"
#include "shim/cut.h"
#include "shim/deadline.h"
#include "shim/endpoint.h"
#include "shim/inside.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/timed.h"
#include "shim/timer.h"

#define SMALL_SEND 4096

/* The rule that an address falls under, its cell, and the time; NULL: none, or no cell is left.
 * Most connects of most programs are under no rule, and need no clock. */
static const struct rule *judge(const struct address *address, uint16_t port, uint64_t *ret_now_ns,
		struct cell **ret_cell, uint64_t *ret_cell_hash)
{
	char host[HOST_SIZE];
	struct endpoint endpoint = { .address = address, .port = port };
	const struct rule *rule;

	if (runtime.config.wants_names && names_find(address, host))
		endpoint.host = host;
	rule = config_match(&runtime.config, &endpoint);
	if (!rule)
		return NULL;
	runtime_matched(rule);
	if (!target_wants_names(&rule->target))
		endpoint.host = NULL;
	*ret_now_ns = clock_now_ns();
	*ret_cell = runtime_cell(rule, CELL_CONNECTION, &endpoint, *ret_now_ns, ret_cell_hash);
	return *ret_cell ? rule : NULL;
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
	if (connection) {
		connection->rule = rule;
		connection->cell = cell;
		connection->cell_hash = cell_hash;
	}
	return connection;
}

static uint32_t generation_of(const struct connection *connection)
{
	return atomic_load_explicit(&connection->generation, memory_order_relaxed);
}

static void hold(struct gate *gate, struct connection *connection)
{
	gate->connection = connection;
	gate->generation = generation_of(connection);
}

/* False: while this thread was in the real call, another closed the descriptor, and the connection
 * may stand for another one by now. */
static bool is_held(const struct gate *gate)
{
	return gate->connection && gate->generation == generation_of(gate->connection);
}

/* connect() on a connection that we know. True where nothing more is to be asked. */
static bool connect_again(struct gate *gate, struct connection *connection,
		const struct sockaddr *address, socklen_t length)
{
	gate->is_disconnect = endpoint_is_disconnect(address, length);
	if (!gate->is_disconnect && exchange_is_new_attempt(&connection->exchange))
		return false;
	hold(gate, connection);
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

bool gate_connect(struct gate *gate, int fd, const struct sockaddr *address, socklen_t length)
{
	struct connection *connection = fd_table_find(fd);
	struct address peer;
	uint16_t port;
	uint64_t now_ns, cell_hash;
	const struct rule *rule;
	struct cell *cell;
	struct permit permit;

	*gate = (struct gate){ .fd = fd };
	if (!runtime_is_judging() || inside_is(__builtin_frame_address(0)))
		return true;
	if (open_lookup_rule())
		open_lookup_leave();
	if (connection && deadline_has_passed(connection) &&
			!endpoint_is_disconnect(address, length))
		return timed_answer(connection, fd) != TIMED_ANSWERED;
	if (connection && connect_again(gate, connection, address, length))
		return true;
	if ((!connection && fd_table_kind(fd) == FD_OTHER) ||
			!endpoint_read(address, length, &peer, &port))
		return true;
	rule = judge(&peer, port, &now_ns, &cell, &cell_hash);
	if (!rule) {
		if (connection)
			call_end(fd_table_set(fd, FD_STREAM));
		return true;
	}
	if (!call_acquire(rule, cell, now_ns, &permit))
		return refuse(rule, cell, now_ns);
	connection = track(fd, rule, cell, cell_hash);
	if (!connection) {
		struct breaker breaker = runtime_breaker(rule, cell);

		breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
		return true;
	}
	call_begin(connection, permit);
	if (rule->settings.timeout_ns || deadline_applies(connection))
		timed_begin(connection, fd);
	exchange_begin(&connection->exchange, now_ns);
	hold(gate, connection);
	if (deadline_applies(connection))
		timed_connect(connection, fd, &gate->bound);
	return true;
}

bool gate_connects_again(struct gate *gate)
{
	return is_held(gate) &&
			timed_connect_goes_on(gate->connection, gate->fd, &gate->bound);
}

int gate_connected(struct gate *gate, int result)
{
	struct connection *connection = gate->connection;
	int error = result ? errno : 0;
	uint64_t now_ns;

	if (!is_held(gate))
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
			call_end(fd_table_set(gate->fd, FD_STREAM));
	} else {
		call_settle(connection, exchange_connected(&connection->exchange,
				call_settings(connection), error, now_ns), now_ns);
	}
	if (result)
		errno = error;
	return result;
}

ssize_t gate_fast_opened(struct gate *gate, struct bytes bytes, ssize_t result)
{
	int error = errno;

	gate_connected(gate, result < 0 ? -1 : 0);
	if (!is_held(gate))
		return result;
	gate->bytes = bytes;
	errno = error;
	return result < 0 ? result : gate_sent(gate, result);
}

/* Another thread may just have begun the very same call. Then one of the two permits is reported
 * with it, and this one goes back: given in one moment, they are worth the same. */
static void begin_call(struct connection *connection, struct permit permit, uint64_t now_ns)
{
	struct breaker breaker;

	call_begin(connection, permit);
	if (exchange_call(&connection->exchange, now_ns))
		return;
	breaker = runtime_breaker(connection->rule, connection->cell);
	breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
}

/* False: fd names another file by now, which is not refused anything. */
static bool refuse_send(struct gate *gate)
{
	if (cut_connection(gate->connection, gate->fd))
		return true;
	gate->connection = NULL;
	return false;
}

/* The first bytes of a call, or of a connection. */
__attribute__((noinline)) static bool begin_send(struct gate *gate)
{
	struct connection *connection = gate->connection;
	uint64_t now_ns = clock_now_ns();
	struct exchange_step step = exchange_will_send(&connection->exchange,
			call_settings(connection), gate->bytes, now_ns);
	struct permit permit;

	gate->began_ns = now_ns;
	if (step.ended != OUTCOME_NONE)
		call_settle(connection, step, now_ns);
	/* A cell that nobody used for long may be another target's by now: then unmetered. */
	if (!step.starts_call || !connection->rule || !segment_cell_is(runtime.segment,
			connection->cell, connection->cell_hash))
		return true;
	if (call_acquire(connection->rule, connection->cell, now_ns, &permit)) {
		begin_call(connection, permit, now_ns);
		return true;
	}
	return runtime.observe || !refuse_send(gate);
}

/* A call on a dead connection: false, unless fd names another file by now. */
static bool go_round_dead(struct gate *gate, int fd)
{
	if (cut_answers(gate->connection, fd))
		return false;
	gate->connection = NULL;
	return true;
}

/* A send on a connection with deadlines, which may have passed. As begin_send(). */
__attribute__((noinline)) static bool begin_timed_send(struct gate *gate)
{
	struct connection *connection = gate->connection;

	if (timed_send(connection, gate->fd) != TIMED_GOES_ON)
		return go_round_dead(gate, gate->fd);
	gate->is_timed = true;
	if (!exchange_is_sending(&connection->exchange) && !begin_send(gate)) {
		timed_sent(connection, -1);
		return false;
	}
	timed_expect(connection);
	return true;
}

bool gate_send(struct gate *gate, struct connection *connection, int fd, struct bytes bytes)
{
	*gate = (struct gate){
		.connection = connection,
		.bytes = bytes,
		.fd = fd,
		.generation = generation_of(connection),
	};
	if (exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT))
		return go_round_dead(gate, fd);
	if (process_is_vfork_child()) {
		gate->connection = NULL;
		return true;
	}
	if (deadline_applies(connection))
		return begin_timed_send(gate);
	if (exchange_is_sending(&connection->exchange))
		return true;
	return begin_send(gate);
}

/* A deadline starts again now, not a tick ago. */
static uint64_t sent_ns(const struct gate *gate, ssize_t result)
{
	/* A small request goes into an empty socket buffer: it was sent when it began. */
	if (gate->began_ns && result <= SMALL_SEND)
		return gate->began_ns;
	return gate->is_timed ? clock_now_ns() : clock_coarse_ns();
}

static ssize_t mind_sent(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	struct exchange_step step;
	int error = errno;
	uint64_t now_ns;

	if (!exchange_minds_sent(&connection->exchange))
		return result;
	now_ns = sent_ns(gate, result);
	step = exchange_sent(&connection->exchange, call_settings(connection), gate->bytes, result,
			error, now_ns);
	if (step.ended != OUTCOME_NONE || step.is_silent || step.has_spoken)
		call_settle(connection, step, now_ns);
	errno = error;
	return result;
}

ssize_t gate_sent(struct gate *gate, ssize_t result)
{
	if (!is_held(gate))
		return result;
	result = mind_sent(gate, result);
	return gate->is_timed ? timed_sent(gate->connection, result) : result;
}

static bool begin_receive(struct gate *gate, int flags)
{
	struct connection *connection = gate->connection;

	gate->began_ns = deadline_applies(connection) ? clock_now_ns() : clock_coarse_ns();
	exchange_wait_begins(&connection->exchange, gate->began_ns);
	if (!deadline_applies(connection) || timed_receive(connection, gate->fd,
			!(flags & MSG_DONTWAIT), &gate->bound) == TIMED_GOES_ON)
		return true;
	return go_round_dead(gate, gate->fd);
}

bool gate_receive(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags)
{
	*gate = (struct gate){
		.connection = connection,
		.bytes = bytes,
		.fd = fd,
		.generation = generation_of(connection),
		.is_peek = flags & MSG_PEEK,
	};
	if (exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT))
		return go_round_dead(gate, fd);
	if (process_is_vfork_child())
		gate->connection = NULL;
	else if (exchange_times_receive(&connection->exchange))
		return begin_receive(gate, flags);
	return true;
}

__attribute__((noinline)) static ssize_t mind_receive(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	struct exchange *exchange = &connection->exchange;
	uint64_t now_ns;
	int error;

	if (deadline_applies(connection))
		result = timed_received(connection, gate->fd, &gate->bound, result);
	error = errno;
	/* Latency deserves the precise clock; where no call is open, nobody asks for the time. */
	now_ns = exchange_has(exchange, EXCHANGE_OPEN) ? clock_now_ns() : clock_coarse_ns();
	call_settle(connection,
			exchange_received(exchange, call_settings(connection), gate->bytes, result,
					error, gate->is_peek, gate->began_ns, now_ns),
			now_ns);
	/* Another thread's send was refused, and shut the receiving side under this recv. */
	if (result == 0 && exchange_has(exchange, EXCHANGE_CUT)) {
		errno = ECONNRESET;
		return -1;
	}
	errno = error;
	return result;
}

ssize_t gate_received(struct gate *gate, ssize_t result)
{
	if (!is_held(gate))
		return result;
	/* Asked after the real call: while this thread waited, another may have sent a request. */
	if (result > 0 && !exchange_minds_receive(&gate->connection->exchange) &&
			!bound_is_set(&gate->bound))
		return result;
	return mind_receive(gate, result);
}
