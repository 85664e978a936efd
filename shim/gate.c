/* SPDX-License-Identifier: MIT */
#include "shim/gate.h"

#include <errno.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/call.h"
#include "shim/cut.h"
#include "shim/endpoint.h"
#include "shim/inside.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/timer.h"

#define SMALL_SEND 4096

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
	uint64_t now_ns = clock_now_ns(), cell_hash;
	struct cell *cell = find_cell(rule, endpoint, now_ns, &cell_hash);
	struct permit permit;

	if (!cell)
		return connect_unjudged(gate->fd, connection);
	if (!call_acquire(rule, cell, now_ns, &permit))
		return refuse(rule, cell, now_ns);
	connection = track(gate->fd, rule, cell, cell_hash);
	if (!connection) {
		struct breaker breaker = runtime_breaker(rule, cell);

		breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
		return true;
	}
	call_begin(connection, permit);
	exchange_begin(&connection->exchange, now_ns);
	hold(gate, connection);
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
	if (open_lookup_rule())
		open_lookup_leave();
	if (connection && connect_again(gate, connection, address, length))
		return true;
	if ((!connection && fd_table_kind(fd) == FD_OTHER) ||
			!endpoint_read(address, length, &peer, &endpoint.port) ||
			!is_of_family(fd, connection, address->sa_family))
		return true;
	if (runtime.config.wants_names)
		return connect_named(gate, connection, &endpoint);
	rule = config_match(&runtime.config, &endpoint);
	if (rule)
		return connect_judged(gate, connection, rule, &endpoint);
	return !connection || connect_unjudged(fd, connection);
}

int gate_connected(struct gate *gate, int result)
{
	struct connection *connection = gate->connection;
	int error = result ? errno : 0;
	uint64_t now_ns;

	if (!is_held(gate))
		return result;
	/* Where the call goes on, this is only the beginning of a silence. */
	now_ns = result || call_settings(connection)->guard == GUARD_CONNECT ? clock_now_ns()
									     : clock_coarse_ns();
	if (gate->is_disconnect) {
		if (!result)
			call_end(fd_table_set(gate->fd, connection->kind));
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

/* A call on a cut connection: false, unless fd names another file by now. */
static bool go_round_cut(struct gate *gate, int fd)
{
	if (cut_holds(fd))
		return false;
	gate->connection = NULL;
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
	if (exchange_has(&connection->exchange, EXCHANGE_CUT))
		return go_round_cut(gate, fd);
	if (process_is_vfork_child()) {
		gate->connection = NULL;
		return true;
	}
	if (exchange_is_sending(&connection->exchange))
		return true;
	return begin_send(gate);
}

ssize_t gate_sent(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	struct exchange_step step;
	uint64_t now_ns;
	int error;

	if (!is_held(gate) || !exchange_minds_sent(&connection->exchange))
		return result;
	error = errno;
	/* A small request goes into an empty socket buffer: it was sent when it began. */
	now_ns = gate->began_ns && result <= SMALL_SEND ? gate->began_ns : clock_coarse_ns();
	step = exchange_sent(&connection->exchange, call_settings(connection), gate->bytes, result,
			error, now_ns);
	if (step.ended != OUTCOME_NONE || step.is_silent || step.has_spoken)
		call_settle(connection, step, now_ns);
	errno = error;
	return result;
}

static void begin_receive(struct gate *gate)
{
	gate->began_ns = clock_coarse_ns();
	exchange_wait_begins(&gate->connection->exchange, gate->began_ns);
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
	if (exchange_has(&connection->exchange, EXCHANGE_CUT))
		return go_round_cut(gate, fd);
	if (process_is_vfork_child())
		gate->connection = NULL;
	else if (exchange_times_receive(&connection->exchange))
		begin_receive(gate);
	return true;
}

__attribute__((noinline)) static ssize_t mind_receive(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	struct exchange *exchange = &connection->exchange;
	int error = errno;
	/* Latency deserves the precise clock; where no call is open, nobody asks for the time. */
	uint64_t now_ns =
			exchange_has(exchange, EXCHANGE_OPEN) ? clock_now_ns() : clock_coarse_ns();

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
	if (result > 0 && !exchange_minds_receive(&gate->connection->exchange))
		return result;
	return mind_receive(gate, result);
}

uint64_t gate_wait_clock(void)
{
	if (!atomic_load_explicit(&fd_table.live, memory_order_relaxed))
		return 0;
	return clock_coarse_ns();
}

void gate_waited(struct connection *connection, uint64_t began_ns)
{
	uint64_t now_ns;

	if (!began_ns || !exchange_times_receive(&connection->exchange))
		return;
	now_ns = clock_coarse_ns();
	call_settle(connection, exchange_waited(&connection->exchange, began_ns, now_ns), now_ns);
}

void gate_so_error(int fd, int *error)
{
	struct connection *connection = fd_table_find(fd);
	uint64_t now_ns;

	if (!connection || process_is_vfork_child())
		return;
	if (exchange_has(&connection->exchange, EXCHANGE_CUT)) {
		int kept = errno;

		if (cut_holds(fd))
			*error = ECONNRESET;
		errno = kept;
		return;
	}
	now_ns = clock_now_ns();
	call_settle(connection,
			exchange_so_error(&connection->exchange, call_settings(connection), *error,
					now_ns),
			now_ns);
}

void gate_receive_timeout(int fd, uint64_t timeout_ns)
{
	struct connection *connection = fd_table_find(fd);
	struct connection *stale = NULL;

	if (!runtime_is_judging())
		return;
	/* Set before connect: remembered in a connection that no rule judges yet. */
	if (!connection && timeout_ns && fd_table_kind(fd) != FD_OTHER)
		connection = fd_table_connect(fd, &stale);
	call_end(stale);
	if (connection)
		exchange_set_receive_timeout(&connection->exchange, timeout_ns);
}
