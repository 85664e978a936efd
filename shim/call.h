/* SPDX-License-Identifier: MIT */
/*
 * The call that is open on a connection: its permit goes in before it begins and is reported
 * exactly once, by whoever ends it. Lock-free, async-signal-safe, errno is kept.
 */
#ifndef SHUNT_SHIM_CALL_H
#define SHUNT_SHIM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/circuit.h"
#include "shim/exchange.h"
#include "shim/fd_table.h"

/* By which rule a connection is judged, and in which cell that is counted: NULL where by none
 * (yet). A cell without a rule is that of a fallback's target. */
struct judge {
	const struct rule *rule;
	struct cell *cell;
};

/* Taken in one step: another thread, or a signal handler, may close the descriptor at any moment
 * and give the connection to the next, and half of either would be nobody's. */
struct judge call_judge(const struct connection *connection);
void call_set_judge(struct connection *connection, struct judge judge, uint64_t cell_hash);

/* A new connection of fd's, in place of whatever stood there, that no rule judges; with the cell of
 * a fallback's target, or none. NULL: no room for it. */
struct connection *call_track(int fd, struct cell *cell);

/* The rule's, or the defaults. */
static inline const struct settings *judge_settings(struct judge judge)
{
	return judge.rule ? &judge.rule->settings : &settings_default;
}

static inline const struct settings *call_settings(const struct connection *connection)
{
	return judge_settings(call_judge(connection));
}

/* What an admitted call holds. */
struct ticket {
	struct permit permit;
	place_t place;
};

enum admission { CALL_ADMITTED, CALL_REFUSED, CALL_NO_PLACE };

/* Asks the rule's breaker, and tells the log what that changed. Refused is counted so; without a
 * place nothing is counted yet. *ret_ticket is set where admitted. */
enum admission call_ask(const struct rule *rule, struct cell *cell, uint64_t cell_hash,
		uint64_t now_ns, struct ticket *ret_ticket);

/* The same for what no bulkhead limits. False: refused. */
bool call_acquire(const struct rule *rule, struct cell *cell, uint64_t now_ns,
		struct permit *ret_permit);

/* A ticket that is not used after all: without any effect. */
void call_return(const struct rule *rule, struct cell *cell, struct ticket ticket, uint64_t now_ns);

/* The ticket of a call that will begin: before the exchange opens it, for another thread may end it
 * at once. */
void call_begin(struct connection *connection, struct ticket ticket);

/* Its place goes back, whatever became of the call: one that a fork cancelled has ended. */
void call_give_place(struct connection *connection);

/* The place that the connection itself holds, until its last descriptor is gone, or its attempt has
 * failed. */
void call_hold(struct connection *connection, place_t place);
void call_let_go(struct connection *connection);

/* The open call, as it can be reported when the connection may be another's already. */
struct call {
	const struct rule *rule;
	struct cell *cell;
	struct permit permit;
	uint64_t began_ns;
};

struct call call_of(const struct connection *connection);

/* For whoever ended it by a step of the exchange, instead of call_settle(). */
void call_report(const struct call *call, enum outcome outcome, uint64_t now_ns);

/* The halves of the next. */
void call_ended(struct connection *connection, enum outcome outcome, uint64_t now_ns);
void call_renew(struct connection *connection, bool is_silent, uint64_t now_ns);

/* Does what a step of the exchange asks for: reports the outcome where it ended the call, renews a
 * probe's lease. */
static inline void call_settle(struct connection *connection, struct exchange_step step,
		uint64_t now_ns)
{
	if (step.ended != OUTCOME_NONE)
		call_ended(connection, step.ended, now_ns);
	else if (step.is_silent || step.has_spoken)
		call_renew(connection, step.is_silent, now_ns);
}

/* Drops permit and places without a word: they are another process's (fork). */
void call_forget(struct connection *connection);

/* The last descriptor of a connection is gone: ends its call and gives it back to the pool. NULL is
 * accepted. */
void call_end(struct connection *connection);

#endif
