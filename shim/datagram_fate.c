/* SPDX-License-Identifier: MIT */
#include "shim/datagram_fate.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/datagram_socket.h"
#include "shim/inject_unit.h"
#include "shim/socket_ask.h"

static enum fate_kind fate_by(enum fault_kind kind)
{
	switch (kind) {
	case FAULT_DROP:
		return FATE_LOST;
	case FAULT_DUP:
		return FATE_TWICE;
	case FAULT_ERRNO:
		return FATE_FAILS;
	default:
		return FATE_PASSES;
	}
}

/* All delays add up; of the others the first. */
static void meet(struct fate *fate, const struct inject_unit *unit, uint64_t now_ns)
{
	const struct fault *fault = &unit->rule->fault;
	enum fate_kind kind = fate_by(fault->kind);
	struct fault_choice choice = inject_unit_choose(unit, now_ns);

	if (choice.reason != FAULT_STRIKES)
		return;
	if (fault->kind == FAULT_LATENCY) {
		fate->delay_ns += inject_unit_strikes_delay(unit, choice.value, now_ns);
		return;
	}
	if (kind == FATE_PASSES || fate->kind != FATE_PASSES) {
		fault_record_suppressed(fault_rule_record(unit->rule), FAULT_IMPOSSIBLE);
		return;
	}
	if (!inject_unit_strikes(unit, choice.value, now_ns))
		return;
	fate->kind = kind;
	fate->error = fault->error;
}

/* Every datagram to or from an endpoint of a rule is a call of it. */
static void count_call(struct fate *fate, struct strike *strike, enum fault_direction direction,
		uint64_t now_ns)
{
	struct inject_unit unit = { .rule = strike_rule(strike) };

	if (!datagram_is_about(&unit.rule->fault, direction))
		return;
	unit.unit.connection = strike_number(strike);
	unit.unit.call = 1 + atomic_fetch_add_explicit(
			&strike->datagrams, 1, memory_order_relaxed);
	meet(fate, &unit, now_ns);
}

static struct fate judge(int fd, const struct sockaddr *address, socklen_t length,
		enum fault_direction direction)
{
	struct fate fate = { .kind = FATE_PASSES };
	uint32_t rules[FAULT_TOGETHER_MAX], count;
	uint64_t now_ns = clock_now_ns();
	struct slot *slot;

	count = fault_rules_match_peer(address, length, FAULT_UDP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	slot = count ? datagram_track(fd) : NULL;
	for (uint32_t i = 0; slot && i < count; i++) {
		struct strike *strike = datagram_strike(slot, fd, rules[i], now_ns);

		if (strike)
			count_call(&fate, strike, direction, now_ns);
	}
	return fate;
}

static struct fate judge_to_peer(int fd)
{
	struct fate fate = { .kind = FATE_PASSES };
	struct slot *slot = datagram_track(fd);
	uint32_t strikes = slot ? datagram_peer(slot, fd) & PEER_STRIKES : 0;
	uint64_t now_ns = strikes ? clock_now_ns() : 0;

	for (; strikes; strikes &= strikes - 1)
		count_call(&fate, &slot->strikes[__builtin_ctz(strikes)], FAULT_OUT, now_ns);
	return fate;
}

struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length)
{
	return address ? judge(fd, address, length, FAULT_OUT) : judge_to_peer(fd);
}

/* Its time began when it came, be it that others were held before it. */
static uint64_t due_ns(int fd, const struct fate *fate, uint64_t now_ns)
{
	uint64_t age_ns;

	if (!fate->delay_ns)
		return 0;
	age_ns = socket_datagram_age_ns(fd);
	return (age_ns < now_ns ? now_ns - age_ns : now_ns) + fate->delay_ns;
}

static bool is_decided(const struct fate_kept *kept)
{
	return atomic_load_explicit(&kept->kind, memory_order_acquire) != FATE_OPEN;
}

static void keep(struct fate_kept *kept, const struct fate *fate, uint64_t until_ns)
{
	atomic_store_explicit(&kept->error, fate->error, memory_order_relaxed);
	atomic_store_explicit(&kept->due_ns, until_ns, memory_order_relaxed);
	/* release: who finds it decided finds the rest. */
	atomic_store_explicit(&kept->kind, fate->kind, memory_order_release);
}

/* An error that the socket had was taken by asking: it is the program's, and goes on to it. */
static struct fate decide(int fd)
{
	struct sockaddr_storage sender;
	long length = socket_next_sender(fd, &sender);

	if (length == -EAGAIN)
		return (struct fate){ .kind = FATE_OPEN };
	if (length < 0)
		return (struct fate){ .kind = FATE_FAILS, .error = (int)-length };
	return judge(fd, (const struct sockaddr *)&sender, (socklen_t)length, FAULT_IN);
}

/* Decided once: who waits for it asks often. Where that cannot be kept, nothing is held. */
struct fate fate_of_next(int fd, uint64_t now_ns, uint64_t *ret_due_ns)
{
	struct slot *slot = datagram_slot(fd);
	enum fate_kind nothing = FATE_OPEN;
	struct fate fate;

	*ret_due_ns = 0;
	while (!slot || !is_decided(&slot->next)) {
		fate = decide(fd);
		slot = datagram_slot(fd);
		if (fate.kind == FATE_OPEN)
			return (struct fate){ .kind = nothing };
		if (fate.kind == FATE_LOST) {
			socket_drop_next(fd);
			nothing = FATE_LOST;
			continue;
		}
		if (!slot)
			return fate;
		keep(&slot->next, &fate, due_ns(fd, &fate, now_ns));
	}
	fate.kind = (enum fate_kind)atomic_load_explicit(&slot->next.kind, memory_order_relaxed);
	fate.error = atomic_load_explicit(&slot->next.error, memory_order_relaxed);
	*ret_due_ns = fate_is_held(fd, now_ns);
	return fate;
}

uint64_t fate_is_held(int fd, uint64_t now_ns)
{
	const struct slot *slot = datagram_slot(fd);
	uint64_t until_ns;

	if (!slot || !is_decided(&slot->next))
		return 0;
	until_ns = atomic_load_explicit(&slot->next.due_ns, memory_order_relaxed);
	return until_ns > now_ns ? until_ns : 0;
}

void fate_of_next_ends(int fd, enum fate_kind kind)
{
	static const struct fate passes = { .kind = FATE_PASSES };
	struct slot *slot = datagram_slot(fd);

	if (slot && kind == FATE_TWICE)
		keep(&slot->next, &passes, 0);
	else if (slot)
		atomic_store_explicit(&slot->next.kind, FATE_OPEN, memory_order_release);
}
