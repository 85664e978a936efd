/* SPDX-License-Identifier: MIT */
#include "shim/call.h"

#include <string.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/holder.h"
#include "shim/runtime.h"

/* How long a probe may hold its slot on a connection that is established and silent. */
#define SILENT_LEASE_MS ((uint32_t)(EXCHANGE_IDLE_NS / 1000000))

/* Relaxed loads and stores: of all who would end a call the exchange lets one, and only that one
 * asks for the permit. The exchange's flags order what was written before. The permit stays when
 * the call has ended: by then the next one may have put its own here. */
static struct permit permit_of(const struct connection *connection)
{
	uint64_t word = atomic_load_explicit(&connection->permit, memory_order_relaxed);
	struct permit permit;

	memcpy(&permit, &word, sizeof(permit));
	return permit;
}

struct judge call_judge(const struct connection *connection)
{
	uint32_t word = atomic_load_explicit(&connection->judge, memory_order_relaxed);
	uint32_t rule = word >> 16, cell = word & UINT16_MAX;

	return (struct judge){
		.rule = rule ? &runtime.config.rules[rule - 1] : NULL,
		.cell = cell ? &runtime.segment->table.cells[cell - 1] : NULL,
	};
}

void call_set_judge(struct connection *connection, struct judge judge, uint64_t cell_hash)
{
	uint32_t rule = judge.rule ? (uint32_t)(judge.rule - runtime.config.rules) + 1 : 0;
	uint32_t cell = judge.cell ? segment_cell_index(runtime.segment, judge.cell) + 1 : 0;

	atomic_store_explicit(&connection->cell_hash, cell_hash, memory_order_relaxed);
	/* Nobody else's cell may be told by the table's index. */
	if (cell <= SEGMENT_CELLS)
		atomic_store_explicit(&connection->judge, rule << 16 | cell, memory_order_relaxed);
}

static void permit_set(struct connection *connection, struct permit permit)
{
	uint64_t word;

	memcpy(&word, &permit, sizeof(word));
	atomic_store_explicit(&connection->permit, word, memory_order_relaxed);
}

/* Whoever takes it out gives it back, once. */
__attribute__((noinline)) static void place_take_out(struct connection *connection,
		_Atomic place_t *place)
{
	holder_give(call_judge(connection).cell,
			atomic_exchange_explicit(place, 0, memory_order_acq_rel));
}

/* Most hold none. */
static inline void place_return(struct connection *connection, _Atomic place_t *place)
{
	if (atomic_load_explicit(place, memory_order_relaxed))
		place_take_out(connection, place);
}

void call_begin(struct connection *connection, struct ticket ticket)
{
	/* That of a call which ended this moment, and whose ender has not come to it yet. */
	place_return(connection, &connection->call_place);
	if (ticket.place)
		atomic_store_explicit(&connection->call_place, ticket.place, memory_order_release);
	permit_set(connection, ticket.permit);
}

void call_hold(struct connection *connection, place_t place)
{
	place_return(connection, &connection->place);
	if (place)
		atomic_store_explicit(&connection->place, place, memory_order_release);
}

void call_give_place(struct connection *connection)
{
	place_return(connection, &connection->call_place);
}

void call_let_go(struct connection *connection)
{
	place_return(connection, &connection->place);
}

void call_forget(struct connection *connection)
{
	atomic_store_explicit(&connection->call_place, 0, memory_order_relaxed);
	atomic_store_explicit(&connection->place, 0, memory_order_relaxed);
	permit_set(connection, (struct permit){ 0 });
}

struct call call_of(const struct connection *connection)
{
	struct judge judge = call_judge(connection);

	return (struct call){
		.rule = judge.rule,
		.cell = judge.cell,
		.permit = permit_of(connection),
		.began_ns = atomic_load_explicit(&connection->exchange.began_ns,
				memory_order_relaxed),
	};
}

static inline void report(const struct call *call, enum outcome outcome, uint64_t now_ns)
{
	struct breaker breaker = runtime_breaker(call->rule, call->cell);
	enum transition transition = breaker_report(&breaker, call->permit, outcome,
			clock_elapsed_ns(call->began_ns, now_ns), now_ns);

	if (transition != TRANSITION_NONE)
		runtime_announce(&breaker, transition);
}

void call_report(const struct call *call, enum outcome outcome, uint64_t now_ns)
{
	if (call->rule)
		report(call, outcome, now_ns);
}

void call_ended(struct connection *connection, enum outcome outcome, uint64_t now_ns)
{
	struct call call = call_of(connection);

	if (!call.rule)
		return;
	place_return(connection, &connection->call_place);
	report(&call, outcome, now_ns);
}

/* A probe on a silent connection gives its slot up early; one that spoke holds it again. */
void call_renew(struct connection *connection, bool is_silent, uint64_t now_ns)
{
	struct judge judge = call_judge(connection);
	struct permit permit = permit_of(connection);
	uint32_t lease_ms = judge_settings(judge)->lease_ms;
	struct breaker breaker;

	if (!judge.rule || permit.kind != PERMIT_PROBE ||
			(is_silent && lease_ms && lease_ms <= SILENT_LEASE_MS))
		return;
	breaker = runtime_breaker(judge.rule, judge.cell);
	permit_set(connection, breaker_renew(&breaker, permit, is_silent ? SILENT_LEASE_MS : 0,
			now_ns));
}

static inline __attribute__((always_inline)) struct decision acquire(
		struct breaker *breaker, uint64_t now_ns, struct ticket *ret_ticket)
{
	uint64_t random =
			breaker->settings->probes_ratio ? runtime_random(breaker->cell) : 0;
	struct decision decision = breaker_acquire(breaker, now_ns, random, &ret_ticket->permit,
			&ret_ticket->place);

	if (decision.transition != TRANSITION_NONE)
		runtime_announce(breaker, decision.transition);
	return decision;
}

enum admission call_ask(const struct rule *rule, struct cell *cell, uint64_t cell_hash,
		uint64_t now_ns, struct ticket *ret_ticket)
{
	struct breaker breaker = runtime_breaker(rule, cell);
	struct decision decision;

	if (breaker_concurrency(&breaker)) {
		breaker.holder = holder_ready();
		breaker.cell_hash = cell_hash;
	}
	decision = acquire(&breaker, now_ns, ret_ticket);
	if (decision.is_full)
		return CALL_NO_PLACE;
	return decision.is_admitted ? CALL_ADMITTED : CALL_REFUSED;
}

bool call_acquire(const struct rule *rule, struct cell *cell, uint64_t now_ns,
		struct permit *ret_permit)
{
	struct breaker breaker = runtime_breaker(rule, cell);
	struct ticket ticket;
	bool is_admitted = acquire(&breaker, now_ns, &ticket).is_admitted;

	*ret_permit = ticket.permit;
	return is_admitted;
}

void call_return(const struct rule *rule, struct cell *cell, struct ticket ticket, uint64_t now_ns)
{
	struct breaker breaker = runtime_breaker(rule, cell);

	holder_give(cell, ticket.place);
	breaker_report(&breaker, ticket.permit, OUTCOME_UNUSED, 0, now_ns);
}

void call_end(struct connection *connection)
{
	uint64_t now_ns;

	if (!connection)
		return;
	now_ns = clock_now_ns();
	call_settle(connection,
			exchange_closed(&connection->exchange, call_settings(connection), now_ns),
			now_ns);
	place_return(connection, &connection->call_place);
	place_return(connection, &connection->place);
	fd_table_free(connection);
}

struct connection *call_track(int fd, struct cell *cell)
{
	struct connection *stale, *connection = fd_table_connect(fd, &stale);

	call_end(stale);
	if (connection)
		call_set_judge(connection, (struct judge){ NULL, cell }, 0);
	return connection;
}
