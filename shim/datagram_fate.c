/* SPDX-License-Identifier: MIT */
#include "shim/datagram_fate.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/call.h"
#include "shim/inject_unit.h"
#include "shim/numbering.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"

/* The connection that stands for the socket, made with its first datagram under a rule. */
static struct connection *track(int fd)
{
	struct connection *connection = fd_table_find(fd);

	if (connection)
		return connection;
	connection = call_track(fd, NULL);
	if (!connection)
		return NULL;
	exchange_set(&connection->exchange, EXCHANGE_UNMETERED);
	slot_begin(slot_of(connection), connection, 1);
	/* So that the next one's age is known. */
	socket_datagram_age_ns(fd);
	return connection;
}

/* The socket under the rule, where its datagrams are counted; NULL: no room. */
static struct strike *strike_of(struct slot *slot, uint32_t rule, uint64_t now_ns)
{
	struct strike *strike = slot_find(slot, rule);

	return strike ? strike : numbering_add(slot, rule, now_ns);
}

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

static bool is_about(const struct fault *fault, enum fault_direction direction)
{
	unsigned int where = direction == FAULT_IN ? POSSIBLE_RECV : POSSIBLE_SEND;

	return fault->where & where && (!fault->direction || fault->direction & direction);
}

/* Every datagram to or from an endpoint of a rule is a call of it. */
static struct fate judge(int fd, const struct sockaddr *address, socklen_t length,
		enum fault_direction direction)
{
	struct fate fate = { .kind = FATE_PASSES };
	struct connection *connection;
	uint32_t rules[FAULT_TOGETHER_MAX], count;
	uint64_t now_ns = clock_now_ns();

	count = fault_rules_match_peer(address, length, FAULT_UDP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	connection = count ? track(fd) : NULL;
	for (uint32_t i = 0; connection && i < count; i++) {
		struct strike *strike = strike_of(slot_of(connection), rules[i], now_ns);
		struct inject_unit unit = { .rule = fault_rule_at(rules[i]) };

		if (!strike || !is_about(&unit.rule->fault, direction))
			continue;
		unit.unit.connection = strike_number(strike);
		unit.unit.call = 1 + atomic_fetch_add_explicit(
				&strike->datagrams, 1, memory_order_relaxed);
		meet(&fate, &unit, now_ns);
	}
	return fate;
}

struct fate fate_of_sent(int fd, const struct sockaddr *address, socklen_t length)
{
	return judge(fd, address, length, FAULT_OUT);
}

/* Of the datagram that is next; length 0: there is none, or its sender is not told. */
static socklen_t sender_of_next(int fd, struct sockaddr_storage *ret)
{
	socklen_t length = sizeof(*ret);
	int error = errno;
	ssize_t result = below()->recvfrom(
			fd, NULL, 0, MSG_PEEK | MSG_DONTWAIT, (struct sockaddr *)ret, &length);

	errno = error;
	return result < 0 ? 0 : length;
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

static struct fate_kept *kept_of(int fd)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot = connection ? slot_of(connection) : NULL;

	return slot && slot_is_valid(slot, connection) ? &slot->next : NULL;
}

static bool is_decided(const struct fate_kept *kept)
{
	return kept && atomic_load_explicit(&kept->kind, memory_order_acquire) != FATE_OPEN;
}

bool fate_is_known(int fd)
{
	return is_decided(kept_of(fd));
}

static void keep(struct fate_kept *kept, const struct fate *fate, uint64_t due_ns)
{
	atomic_store_explicit(&kept->error, fate->error, memory_order_relaxed);
	atomic_store_explicit(&kept->due_ns, due_ns, memory_order_relaxed);
	/* release: who finds it decided finds the rest. */
	atomic_store_explicit(&kept->kind, fate->kind, memory_order_release);
}

/* Decided once: who waits for it asks often. Where that cannot be kept, nothing is held. */
uint64_t fate_of_next(int fd, uint64_t now_ns, struct fate *ret_fate)
{
	struct fate_kept *kept = kept_of(fd);
	struct sockaddr_storage sender;
	uint64_t until_ns;
	socklen_t length;

	if (!is_decided(kept)) {
		length = sender_of_next(fd, &sender);
		*ret_fate = judge(fd, (const struct sockaddr *)&sender, length, FAULT_IN);
		kept = kept_of(fd);
		if (!kept)
			return 0;
		keep(kept, ret_fate, due_ns(fd, ret_fate, now_ns));
	}
	ret_fate->kind = (enum fate_kind)atomic_load_explicit(&kept->kind, memory_order_relaxed);
	ret_fate->error = atomic_load_explicit(&kept->error, memory_order_relaxed);
	until_ns = atomic_load_explicit(&kept->due_ns, memory_order_relaxed);
	return until_ns > now_ns ? until_ns : 0;
}

void fate_of_next_ends(int fd, enum fate_kind kind)
{
	static const struct fate passes = { .kind = FATE_PASSES };
	struct fate_kept *kept = kept_of(fd);

	if (kept && kind == FATE_TWICE)
		keep(kept, &passes, 0);
	else if (kept)
		atomic_store_explicit(&kept->kind, FATE_OPEN, memory_order_release);
}
