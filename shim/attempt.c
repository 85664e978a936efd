/* SPDX-License-Identifier: MIT */
#include "shim/attempt.h"

#include <errno.h>

#include "shim/call.h"
#include "shim/fault_report.h"
#include "shim/inject_choose.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"
#include "shim/withheld.h"

/* A connection that no breaker judges: it is here to be told from others. */
static struct connection *track(int fd, uint64_t now_ns)
{
	struct connection *connection = call_track(fd, NULL);

	if (connection)
		exchange_begin(&connection->exchange, now_ns);
	return connection;
}

bool attempt_begins(struct attempt *attempt)
{
	uint32_t rules[FAULT_TOGETHER_MAX], count;

	count = fault_rules_match_peer(attempt->address, attempt->length, FAULT_TCP,
			attempt->sight.now_ns, rules, FAULT_TOGETHER_MAX);
	if (!count && !attempt->sight.connection)
		return false;
	if (!attempt->sight.connection)
		attempt->sight.connection = track(attempt->sight.fd, attempt->sight.now_ns);
	if (!attempt->sight.connection)
		return false;
	attempt->sight.slot = slot_of(attempt->sight.connection);
	inject_attempt_begins(&attempt->sight, rules, count);
	return count;
}

/* Only then it matters whether the program waits. */
static bool may_be_late(const struct slot *slot)
{
	return slot_has_kind(slot, FAULT_LATENCY) || slot_has_kind(slot, FAULT_TIMEOUT) ||
	       slot_has_kind(slot, FAULT_HANG);
}

/* What it would fail with; 0: it would not. */
static int error_of(const struct strike *strike)
{
	const struct fault *fault = strike_fault(strike);
	uint32_t rule = atomic_load_explicit(&strike->rule, memory_order_relaxed);
	uint32_t number = strike_number(strike);

	switch (fault->kind) {
	case FAULT_REFUSE:
		return ECONNREFUSED;
	case FAULT_UNREACHABLE:
		return EHOSTUNREACH;
	case FAULT_TIMEOUT:
		return ETIMEDOUT;
	case FAULT_ERRNO:
		return fault->where & POSSIBLE_CONNECT ? fault->error : 0;
	case FAULT_MAXCONN:
		return fault_report_is_replayed() || slots_of_rule(rule, number) >= fault->low ?
				ECONNREFUSED : 0;
	default:
		return 0;
	}
}

static void strike_error(struct attempt *attempt, struct strike *strike)
{
	int error = error_of(strike);
	uint64_t delay_ns = strike_fault(strike)->kind == FAULT_TIMEOUT ?
			strike_value(strike) : 0;

	if (!error && strike_fault(strike)->kind == FAULT_MAXCONN)
		inject_is_suppressed(attempt->sight.slot, strike, FAULT_BY_NUMBER);
	if (!error || attempt->error)
		return;
	if (delay_ns && !inject_may_delay(&attempt->sight)) {
		inject_is_suppressed(attempt->sight.slot, strike, FAULT_BY_MODE);
		return;
	}
	if (!inject_strikes(&attempt->sight, strike, STRIKE_DONE))
		return;
	attempt->error = error;
	attempt->delay_ns += delay_ns;
}

/* The kernel itself says nothing from now on, however the program waits. Where it will not be made
 * to, the attempt comes when nobody waits any more. */
static void strike_silence(struct attempt *attempt, struct strike *strike, bool may_delay)
{
	bool is_silent;

	if (own_calls_are_forbidden())
		return inject_is_suppressed(attempt->sight.slot, strike, FAULT_BY_MODE);
	is_silent = socket_silence(attempt->sight.fd);
	if (!is_silent && !may_delay)
		return inject_is_suppressed(attempt->sight.slot, strike, FAULT_IMPOSSIBLE);
	if (!inject_strikes(&attempt->sight, strike, STRIKE_DONE)) {
		if (is_silent)
			socket_listen_again(attempt->sight.fd);
	} else if (!is_silent) {
		holds_expect();
		attempt->delay_ns += SOCKET_SILENCE_NS;
	}
}

static bool is_silencing(const struct strike *strike)
{
	return strike_is(strike, STRIKE_ARMED) && strike_fault(strike)->kind == FAULT_HANG;
}

void attempt_meets_faults(struct attempt *attempt)
{
	uint32_t count = slot_count(attempt->sight.slot);

	attempt->sight.is_blocking = may_be_late(attempt->sight.slot) &&
			socket_is_blocking(attempt->sight.fd);
	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &attempt->sight.slot->strikes[i];

		if (!strike_is(strike, STRIKE_ARMED))
			continue;
		if (strike_fault(strike)->kind == FAULT_LATENCY)
			attempt->delay_ns += inject_strikes_delay(&attempt->sight, strike);
		else
			strike_error(attempt, strike);
	}
	for (uint32_t i = 0; i < count && !attempt->error; i++) {
		struct strike *strike = &attempt->sight.slot->strikes[i];

		if (is_silencing(strike) && strike_fault(strike)->per == FAULT_PER_CONNECTION)
			strike_silence(attempt, strike, inject_may_delay(&attempt->sight));
	}
	inject_attempt_ended(attempt->sight.slot);
}

void attempt_meets_errors(struct attempt *attempt)
{
	uint32_t count = slot_count(attempt->sight.slot);

	attempt->sight.is_blocking = false;
	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &attempt->sight.slot->strikes[i];

		if (strike_is(strike, STRIKE_ARMED) && strike_fault(strike)->kind != FAULT_LATENCY)
			strike_error(attempt, strike);
	}
	/* The first send of the first call is this one. */
	for (uint32_t i = 0; i < count && !attempt->error; i++) {
		struct strike *strike = &attempt->sight.slot->strikes[i];

		if (is_silencing(strike))
			strike_silence(attempt, strike, false);
	}
	inject_attempt_ended(attempt->sight.slot);
}
