/* SPDX-License-Identifier: MIT */
#include "shim/gate.h"

#include <errno.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/admission.h"
#include "shim/call.h"
#include "shim/cut.h"
#include "shim/inside.h"
#include "shim/runtime.h"

#define SMALL_SEND 4096

/* Another thread may just have begun the very same call. Then one of the two permits is reported
 * with it, and this one goes back: given in one moment, they are worth the same. */
static void begin_call(struct connection *connection, const struct admitted *admitted)
{
	struct ticket ticket = admitted->ticket;

	call_begin(connection, ticket);
	if (exchange_call(&connection->exchange, admitted->now_ns))
		return;
	/* The place is the connection's by now, and goes back with the call. */
	ticket.place = 0;
	call_return(connection->rule, connection->cell, ticket, admitted->now_ns);
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
	struct admitted admitted;

	gate->began_ns = now_ns;
	if (step.ended != OUTCOME_NONE)
		call_settle(connection, step, now_ns);
	/* A cell that nobody used for long may be another target's by now: then unmetered. */
	if (!step.starts_call || !connection->rule || !segment_cell_is(runtime.segment,
			connection->cell, connection->cell_hash))
		return true;
	if (admission_ask(&(struct asking){ .rule = connection->rule, .cell = connection->cell,
			.cell_hash = connection->cell_hash, .fd = gate->fd,
			.may_not_wait = gate->may_not_wait }, now_ns, &admitted)) {
		begin_call(connection, &admitted);
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

bool gate_send(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags)
{
	*gate = (struct gate){
		.connection = connection,
		.bytes = bytes,
		.fd = fd,
		.generation = gate_generation_of(connection),
		.may_not_wait = flags & MSG_DONTWAIT,
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

	if (!gate_is_held(gate) || !exchange_minds_sent(&connection->exchange))
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
		.generation = gate_generation_of(connection),
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
	if (!gate_is_held(gate))
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
