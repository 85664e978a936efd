/* SPDX-License-Identifier: MIT */
#include "shim/gate.h"

#include <errno.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/admission.h"
#include "shim/call.h"
#include "shim/cut.h"
#include "shim/deadline.h"
#include "shim/inject.h"
#include "shim/inside.h"
#include "shim/runtime.h"
#include "shim/timed.h"

#define SMALL_SEND 4096

/* Another thread may just have begun the very same call. Then one of the two permits is reported
 * with it, and this one goes back: given in one moment, they are worth the same. */
static void begin_call(struct connection *connection, struct judge judge, struct ticket ticket,
		uint64_t now_ns)
{
	call_begin(connection, ticket);
	if (exchange_call(&connection->exchange, now_ns))
		return;
	/* The place is the connection's by now, and goes back with the call. */
	ticket.place = 0;
	call_return(judge.rule, judge.cell, ticket, now_ns);
}

/* False: refused. True also where it is not: by observe, or fd names another file by now. */
__attribute__((noinline)) static bool go_on_refused(struct gate *gate)
{
	if (runtime.observe)
		return true;
	if (gate_is_held(gate) && cut_connection(gate->connection, gate->fd))
		return false;
	gate->connection = NULL;
	return true;
}

__attribute__((noinline)) static bool begin_limited(struct gate *gate, struct judge judge,
		uint64_t cell_hash, uint64_t now_ns)
{
	struct asking asking = {
		.rule = judge.rule,
		.cell = judge.cell,
		.cell_hash = cell_hash,
		.fd = gate->fd,
		.may_not_wait = gate->may_not_wait,
	};
	struct admitted admitted;

	if (!admission_ask(&asking, now_ns, &admitted)) {
		if (!admitted.is_interrupted)
			return go_on_refused(gate);
		errno = EINTR;
		return false;
	}
	begin_call(gate->connection, judge, admitted.ticket, admitted.now_ns);
	return true;
}

static bool begin_admitted(struct gate *gate, struct judge judge, uint64_t now_ns)
{
	uint64_t cell_hash = atomic_load_explicit(&gate->connection->cell_hash,
			memory_order_relaxed);
	struct ticket ticket = { .place = 0 };

	if (!gate_is_held(gate))
		return true;
	/* Faults count calls where no breaker does. */
	if (!judge.rule)
		exchange_call(&gate->connection->exchange, now_ns);
	/* A cell that nobody used for long may be another target's by now: then unmetered. */
	if (!judge.rule || !segment_cell_is(runtime.segment, judge.cell, cell_hash))
		return true;
	if (admission_is_limited(judge.rule, judge.cell))
		return begin_limited(gate, judge, cell_hash, now_ns);
	if (!call_acquire(judge.rule, judge.cell, now_ns, &ticket.permit))
		return go_on_refused(gate);
	begin_call(gate->connection, judge, ticket, now_ns);
	return true;
}

/* The first bytes of a call, or of a connection. */
__attribute__((noinline)) static bool begin_send(struct gate *gate)
{
	struct connection *connection = gate->connection;
	uint64_t now_ns = clock_now_ns();
	struct judge judge = call_judge(connection);
	struct exchange_step step = exchange_will_send(&connection->exchange,
			judge_settings(judge), gate->bytes, now_ns);

	inject_look();
	gate->began_ns = now_ns;
	call_settle(connection, step, now_ns);
	return !step.starts_call || begin_admitted(gate, judge, now_ns);
}

/* A call on a dead connection: false, unless fd names another file by now. */
static bool go_round_dead(struct gate *gate, int fd)
{
	if (cut_answers(gate->connection, fd))
		return false;
	gate->connection = NULL;
	return true;
}

/* A send on a connection that is dead, or has deadlines, which may have passed. As begin_send(). */
__attribute__((noinline)) static bool begin_timed_send(struct gate *gate)
{
	struct connection *connection = gate->connection;

	if (exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT) ||
			timed_send(connection, gate->fd) != TIMED_GOES_ON)
		return go_round_dead(gate, gate->fd);
	gate->is_timed = true;
	if (!exchange_is_sending(&connection->exchange) && !begin_send(gate)) {
		timed_sent(connection, -1);
		return false;
	}
	timed_expect(connection);
	return true;
}

/* One by one: no bound matters here. */
static void gate_begin(struct gate *gate, struct connection *connection, int fd,
		struct bytes bytes)
{
	gate->connection = connection;
	gate->bytes = bytes;
	gate->began_ns = 0;
	gate->fd = fd;
	gate->generation = fd_table_generation(connection);
	gate->is_peek = false;
	gate->may_not_wait = false;
	gate->is_disconnect = false;
	gate->is_timed = false;
}

bool gate_send(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags)
{
	uint32_t known = exchange_flags(&connection->exchange);

	gate_begin(gate, connection, fd, bytes);
	gate->may_not_wait = flags & MSG_DONTWAIT;
	if (process_is_vfork_child()) {
		gate->connection = NULL;
		return true;
	}
	if (known & (EXCHANGE_CUT | EXCHANGE_TIMED_OUT | EXCHANGE_DEADLINE))
		return begin_timed_send(gate);
	return exchange_flags_are_sending(known) || begin_send(gate);
}

/* A deadline starts again now, not a tick ago. */
static uint64_t sent_ns(const struct gate *gate, ssize_t result)
{
	/* A small request goes into an empty socket buffer: it was sent when it began. */
	if (gate->began_ns && result <= SMALL_SEND)
		return gate->began_ns;
	return gate->is_timed ? clock_now_ns() : clock_coarse_ns();
}

__attribute__((noinline)) static void mind_sent(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	uint64_t now_ns = sent_ns(gate, result);

	call_settle(connection,
			exchange_sent(&connection->exchange, call_settings(connection), gate->bytes,
					result, result < 0 ? errno : 0, now_ns),
			now_ns);
}

ssize_t gate_sent(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	uint32_t flags;

	if (!gate_is_held(gate))
		return result;
	flags = exchange_flags(&connection->exchange);
	if (result > 0 && exchange_flags_are_routine(flags))
		silence_break(&connection->exchange.silence, sent_ns(gate, result));
	else if (exchange_flags_mind_sent(flags))
		mind_sent(gate, result);
	return gate->is_timed ? timed_sent(connection, result) : result;
}

__attribute__((noinline)) static bool begin_receive(struct gate *gate, int flags)
{
	struct connection *connection = gate->connection;

	gate->began_ns = deadline_applies(connection) ? clock_now_ns() : clock_coarse_ns();
	exchange_wait_begins(&connection->exchange, gate->began_ns);
	if (!deadline_applies(connection))
		return true;
	switch (timed_receive(connection, gate->fd, !(flags & MSG_DONTWAIT))) {
	case TIMED_GOES_ON:
		return true;
	case TIMED_INTERRUPTED:
		gate_received(gate, -1);
		return false;
	default:
		return go_round_dead(gate, gate->fd);
	}
}

bool gate_receive(struct gate *gate, struct connection *connection, int fd, struct bytes bytes,
		int flags)
{
	uint32_t known = exchange_flags(&connection->exchange);

	gate_begin(gate, connection, fd, bytes);
	gate->is_peek = flags & MSG_PEEK;
	if (process_is_vfork_child()) {
		gate->connection = NULL;
		return true;
	}
	inject_look();
	if (known & (EXCHANGE_CUT | EXCHANGE_TIMED_OUT))
		return go_round_dead(gate, fd);
	return !exchange_flags_time_receive(known) || begin_receive(gate, flags);
}

/* Of a call that a fork cancelled: it ends here, if this is an answer or says that none comes. */
__attribute__((noinline)) static void end_cancelled(struct connection *connection, ssize_t result)
{
	if (result < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	exchange_clear(&connection->exchange, EXCHANGE_CANCELLED);
	call_give_place(connection);
}

__attribute__((noinline)) static ssize_t mind_receive(struct gate *gate, ssize_t result)
{
	struct connection *connection = gate->connection;
	struct exchange *exchange = &connection->exchange;
	uint64_t now_ns;

	if (exchange_has(exchange, EXCHANGE_CANCELLED))
		end_cancelled(connection, result);
	if (deadline_applies(connection))
		result = timed_received(connection, result);
	/* Latency deserves the precise clock; where no call is open, nobody asks for the time. */
	now_ns = exchange_has(exchange, EXCHANGE_OPEN) ? clock_now_ns() : clock_coarse_ns();
	call_settle(connection,
			exchange_received(exchange, call_settings(connection), gate->bytes, result,
					result < 0 ? errno : 0, gate->is_peek, gate->began_ns,
					now_ns),
			now_ns);
	/* Another thread's send was refused, and shut the receiving side under this recv. */
	if (result == 0 && exchange_has(exchange, EXCHANGE_CUT)) {
		errno = ECONNRESET;
		return -1;
	}
	return result;
}

/* Nothing was there to be read, and no time is to be told from it. */
static bool is_mere_look(const struct gate *gate, ssize_t result)
{
	return result < 0 && !gate->began_ns && errno == EAGAIN &&
	       !deadline_applies(gate->connection);
}

static void end_routine_call(struct connection *connection)
{
	uint64_t now_ns = clock_now_ns();

	call_settle(connection, exchange_end(&connection->exchange, OUTCOME_SUCCESS), now_ns);
}

/* Looks at the exchange after the real call: while this thread waited, another may have sent a
 * request. */
static ssize_t received_data(struct gate *gate, ssize_t result)
{
	uint32_t flags = exchange_flags(&gate->connection->exchange);

	if (gate->began_ns)
		return mind_receive(gate, result);
	if (exchange_flags_are_routine(flags))
		end_routine_call(gate->connection);
	else if (exchange_flags_mind_receive(flags))
		return mind_receive(gate, result);
	return result;
}

ssize_t gate_received(struct gate *gate, ssize_t result)
{
	if (!gate_is_held(gate))
		return result;
	if (result > 0)
		return received_data(gate, result);
	return is_mere_look(gate, result) ? result : mind_receive(gate, result);
}
