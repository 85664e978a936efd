/* SPDX-License-Identifier: MIT */
#include "shim/adoption.h"
#include "shim/inject_choose.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/inject_unit.h"
#include "shim/numbering.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"
#include "shim/withheld.h"

#define KIND(kind) (1u << FAULT_##kind)
/* What is over when the attempt is. */
#define KINDS_OF_ATTEMPT (KIND(REFUSE) | KIND(UNREACHABLE) | KIND(TIMEOUT) | KIND(MAXCONN))

static struct fault_rule *rule_of(const struct strike *strike)
{
	return fault_rule_at(atomic_load_explicit(&strike->rule, memory_order_relaxed));
}

bool inject_is_over(const struct strike *strike, uint64_t now_ns)
{
	return inject_unit_is_over(rule_of(strike), now_ns);
}

static struct inject_unit unit_of(const struct slot *slot, const struct strike *strike)
{
	struct fault_rule *rule = rule_of(strike);

	return (struct inject_unit){
		.rule = rule,
		.unit = {
			.connection = strike_number(strike),
			.call = rule->fault.per == FAULT_PER_CONNECTION ? 1 :
					atomic_load_explicit(&slot->call, memory_order_relaxed),
		},
	};
}

static void choose(const struct slot *slot, struct strike *strike, uint64_t now_ns)
{
	struct inject_unit unit = unit_of(slot, strike);
	struct fault_choice choice = inject_unit_choose(&unit, now_ns);

	atomic_store_explicit(&strike->moved, 0, memory_order_relaxed);
	atomic_store_explicit(&strike->value, choice.value, memory_order_relaxed);
	atomic_store_explicit(&strike->state,
			choice.reason == FAULT_STRIKES ? STRIKE_ARMED : STRIKE_IDLE,
			memory_order_release);
}

bool inject_strikes(const struct sight *sight, struct strike *strike, enum strike_state next)
{
	uint32_t state = STRIKE_ARMED;
	struct inject_unit unit = unit_of(sight->slot, strike);
	struct judge judge = call_judge(sight->connection);
	bool strikes;

	if (!atomic_compare_exchange_strong_explicit(&strike->state, &state, (uint32_t)next,
			    memory_order_acq_rel, memory_order_relaxed))
		return false;
	unit.cell = judge.rule ? judge.cell : NULL;
	strikes = inject_unit_strikes(&unit, strike_value(strike), sight->now_ns);
	if (!strikes)
		atomic_store_explicit(&strike->state, STRIKE_DONE, memory_order_relaxed);
	slot_count_kinds(sight->slot);
	return strikes;
}

bool inject_may_delay(const struct sight *sight)
{
	return !own_calls_are_forbidden() && (sight->is_blocking || hold_is_possible());
}

uint64_t inject_strikes_delay(const struct sight *sight, struct strike *strike)
{
	if (!inject_may_delay(sight)) {
		inject_is_suppressed(sight->slot, strike, FAULT_BY_MODE);
		return 0;
	}
	return inject_strikes(sight, strike, STRIKE_DONE) ? strike_value(strike) : 0;
}

void inject_is_suppressed(struct slot *slot, struct strike *strike, enum fault_reason reason)
{
	uint32_t state = STRIKE_ARMED;

	if (!atomic_compare_exchange_strong_explicit(&strike->state, &state, STRIKE_DONE,
			    memory_order_acq_rel, memory_order_relaxed))
		return;
	fault_record_suppressed(fault_rule_record(rule_of(strike)), reason);
	slot_count_kinds(slot);
}

static bool is_of_call(const struct strike *strike)
{
	return strike_fault(strike)->per == FAULT_PER_CALL;
}

/* What waits for the stream to come to some point is not impossible where it ended before. */
static enum fault_reason reason_at_end(const struct fault *fault)
{
	bool waits = fault->kind == FAULT_RESET || fault->kind == FAULT_CLOSE ||
			fault->kind == FAULT_SLOWCLOSE;

	return waits ? FAULT_UNREACHED : FAULT_IMPOSSIBLE;
}

/* Of a unit that is over: what is still armed never struck. */
static void end_unit(struct slot *slot, bool of_call_only)
{
	uint32_t count = slot_count(slot);

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &slot->strikes[i];

		if (of_call_only && !is_of_call(strike))
			continue;
		if (slot_has(slot, SLOT_INHERITED))
			atomic_store_explicit(&strike->state, STRIKE_DONE, memory_order_relaxed);
		else
			inject_is_suppressed(slot, strike, reason_at_end(strike_fault(strike)));
	}
}

static void end_all(struct slot *slot)
{
	end_unit(slot, false);
}

void inject_attempt_begins(const struct sight *sight, const uint32_t *rules, uint32_t count)
{
	uint64_t generation = atomic_load_explicit(&fault_rules.generation, memory_order_relaxed);
	struct slot *slot = sight->slot;

	/* Of the connection that had the memory before. */
	end_unit(slot, false);
	slot_begin(slot, sight->connection, 1);
	numbering_add_all(slot, rules, count, sight->now_ns);
	for (uint32_t i = 0; i < slot_count(slot); i++)
		choose(slot, &slot->strikes[i], sight->now_ns);
	slot_count_kinds(slot);
	atomic_store_explicit(&slot->rules, generation, memory_order_relaxed);
}

static bool is_of_attempt(const struct fault *fault)
{
	return KINDS_OF_ATTEMPT >> fault->kind & 1 || (fault->kind == FAULT_ERRNO &&
			!(fault->where & ~(unsigned int)POSSIBLE_CONNECT));
}

void inject_attempt_ended(struct slot *slot)
{
	uint32_t count = slot_count(slot);

	for (uint32_t i = 0; i < count; i++) {
		const struct fault *fault = strike_fault(&slot->strikes[i]);

		if (is_of_attempt(fault) || fault->kind == FAULT_LATENCY)
			inject_is_suppressed(slot, &slot->strikes[i], FAULT_IMPOSSIBLE);
	}
}

/* There was an attempt before the rule was: what it strikes can only be the call that begins. */
static void attempt_was_before(struct slot *slot, struct strike *strike)
{
	const struct fault *fault = strike_fault(strike);

	if (is_of_attempt(fault) || (fault->kind == FAULT_LATENCY && !is_of_call(strike)))
		inject_is_suppressed(slot, strike, FAULT_IMPOSSIBLE);
}

/* A call after the first. */
static void begin_call(struct slot *slot, uint64_t now_ns)
{
	uint32_t count = slot_count(slot);

	end_unit(slot, true);
	atomic_fetch_add_explicit(&slot->call, 1, memory_order_relaxed);
	slot_clear(slot, SLOT_ANSWERS | SLOT_WAITS);
	atomic_store_explicit(&slot->answer_due_ns, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < count; i++) {
		if (!is_of_call(&slot->strikes[i]))
			continue;
		fault_record_seen(fault_rule_record(rule_of(&slot->strikes[i])));
		choose(slot, &slot->strikes[i], now_ns);
	}
	slot_count_kinds(slot);
}

/* Who changes the exchange's time in the slot is the one to begin the call. */
static void look_at_call(struct slot *slot, struct connection *connection)
{
	uint64_t began_ns = atomic_load_explicit(
			&connection->exchange.began_ns, memory_order_relaxed);
	uint64_t known_ns = atomic_load_explicit(&slot->call_ns, memory_order_relaxed);

	if (began_ns == known_ns || !atomic_compare_exchange_strong_explicit(&slot->call_ns,
						    &known_ns, began_ns, memory_order_acq_rel,
						    memory_order_relaxed))
		return;
	/* One that had no answer yet goes on with its first call, however long it was silent; one
	 * whose first send came to nothing (EAGAIN) is tried again, and is the same. */
	if (exchange_has(&connection->exchange, EXCHANGE_ANSWERED) && !slot_has(slot, SLOT_UNSENT))
		begin_call(slot, clock_now_ns());
}

static uint32_t match_peer(int fd, uint64_t now_ns, uint32_t *ret)
{
	struct sockaddr_storage peer;
	socklen_t length = socket_peer(fd, &peer);

	return fault_rules_match_peer((struct sockaddr *)&peer, length, FAULT_TCP, now_ns, ret,
			FAULT_TOGETHER_MAX);
}

/* Rules were added: which of them are about this connection's peer? */
__attribute__((noinline)) static void match_again(struct slot *slot, int fd)
{
	uint64_t generation = atomic_load_explicit(&fault_rules.generation, memory_order_relaxed);
	uint64_t known = atomic_load_explicit(&slot->rules, memory_order_relaxed);
	uint64_t now_ns = clock_now_ns();
	uint32_t rules[FAULT_TOGETHER_MAX], count;

	/* One thread alone. */
	if (known == generation || !atomic_compare_exchange_strong_explicit(&slot->rules, &known,
						   generation, memory_order_acq_rel,
						   memory_order_relaxed))
		return;
	count = match_peer(fd, now_ns, rules);
	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike;

		if (slot_find(slot, rules[i]))
			continue;
		strike = numbering_add(slot, rules[i], now_ns);
		if (!strike)
			continue;
		choose(slot, strike, now_ns);
		attempt_was_before(slot, strike);
	}
	slot_count_kinds(slot);
}

bool inject_concerns(struct slot *slot, struct connection *connection, int fd)
{
	int error = errno;

	if (fault_rules_have_changed())
		adoption_refresh(clock_now_ns());
	if (!slot_is_valid(slot, connection)) {
		slot_begin(slot, connection, 1);
		atomic_store_explicit(&slot->rules, UINT64_MAX, memory_order_relaxed);
	}
	look_at_call(slot, connection);
	if (atomic_load_explicit(&slot->rules, memory_order_relaxed) !=
			atomic_load_explicit(&fault_rules.generation, memory_order_relaxed))
		match_again(slot, fd);
	errno = error;
	return slot_kinds(slot) || atomic_load_explicit(&slot->flags, memory_order_relaxed);
}

void inject_choices_end(void)
{
	slots_each(end_all);
}

static void inherit(struct slot *slot)
{
	slot_set(slot, SLOT_INHERITED);
}

void inject_choices_forked(void)
{
	numbering_forked();
	slots_each(inherit);
}
