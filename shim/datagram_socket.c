/* SPDX-License-Identifier: MIT */
#include "shim/datagram_socket.h"

#include "core/clock.h"
#include "shim/call.h"
#include "shim/endpoint.h"
#include "shim/fault_report.h"
#include "shim/inject_unit.h"
#include "shim/inside.h"
#include "shim/numbering.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"
#include "shim/withheld.h"

struct slot *datagram_slot(int fd)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot;

	if (!connection || connection->kind != FD_DATAGRAM)
		return NULL;
	slot = slot_of(connection);
	return slot && slot_is_valid(slot, connection) ? slot : NULL;
}

/* The connection that stands for the socket. NULL: no room. */
struct slot *datagram_track(int fd)
{
	struct slot *slot = datagram_slot(fd);
	struct connection *connection = slot ? NULL : call_track(fd, NULL);

	if (!connection)
		return slot;
	exchange_set(&connection->exchange, EXCHANGE_UNMETERED);
	slot = slot_of(connection);
	slot_begin(slot, connection, 1);
	return slot;
}

/* At all, that is: what never strikes costs no system call. */
static bool may_strike(const struct fault_rule *rule)
{
	return rule->fault.ratio || fault_report_is_replayed();
}

/* The socket under the rule, where its datagrams are counted; NULL: no room. */
struct strike *datagram_strike(struct slot *slot, uint32_t rule, uint64_t now_ns)
{
	struct strike *strike = slot_find(slot, rule);

	if (strike)
		return strike;
	strike = numbering_add(slot, rule, now_ns);
	if (!strike)
		fault_record_matched(fault_rule_record(fault_rule_at(rule)));
	return strike;
}

bool datagram_is_about(const struct fault *fault, enum fault_direction direction)
{
	unsigned int where = direction == FAULT_IN ? POSSIBLE_RECV : POSSIBLE_SEND;

	return fault->where & where && (!fault->direction || fault->direction & direction);
}

static bool is_one(struct fault_rule *rule, uint64_t now_ns)
{
	const struct fault *fault = &rule->fault;

	return fault->protocol == FAULT_UDP && !fault->is_lookup && !fault->target.is_excluded &&
			!inject_unit_is_over(rule, now_ns);
}

/* Is there a rule that may strike there, or, with FAULT_BOTH, one that is about datagrams? */
static bool rules_exist(enum fault_direction direction, uint64_t now_ns)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		struct fault_rule *rule = fault_rule_at(i);

		if (is_one(rule, now_ns) && (direction == FAULT_BOTH ||
				(datagram_is_about(&rule->fault, direction) && may_strike(rule))))
			return true;
	}
	return false;
}

static bool late_rules_exist(uint64_t now_ns)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		struct fault_rule *rule = fault_rule_at(i);

		if (is_one(rule, now_ns) && rule->fault.kind == FAULT_LATENCY && may_strike(rule))
			return true;
	}
	return false;
}

/* Those of a peer that strike it, as bits. */
static uint32_t strikes_of(struct slot *slot, const uint32_t *rules, uint32_t count,
		uint64_t now_ns)
{
	uint32_t strikes = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct strike *strike = datagram_strike(slot, rules[i], now_ns);

		if (strike)
			strikes |= 1u << (strike - slot->strikes);
	}
	return strikes;
}

static bool may_any_strike(const uint32_t *rules, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (may_strike(fault_rule_at(rules[i])))
			return true;
	}
	return false;
}

/* It was looked at, once. */
static void count_passing(const uint32_t *rules, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct fault_record *record = fault_rule_record(fault_rule_at(rules[i]));

		fault_record_matched(record);
		fault_record_suppressed(record, FAULT_BY_CHANCE);
	}
}

static uint32_t learn_peer(struct slot *slot, const struct sockaddr *address, socklen_t length)
{
	uint64_t generation = atomic_load_explicit(&fault_rules.generation, memory_order_relaxed);
	uint64_t now_ns = clock_now_ns();
	uint32_t rules[FAULT_TOGETHER_MAX], count, peer = PEER_KNOWN;

	count = fault_rules_match_peer(address, length, FAULT_UDP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	if (may_any_strike(rules, count))
		peer |= strikes_of(slot, rules, count, now_ns);
	else
		count_passing(rules, count);
	atomic_store_explicit(&slot->rules, generation, memory_order_relaxed);
	atomic_store_explicit(&slot->peer, peer, memory_order_release);
	return peer;
}

/* Under a filter nobody is asked: 0, not known. */
uint32_t datagram_peer(struct slot *slot, int fd)
{
	uint32_t peer = atomic_load_explicit(&slot->peer, memory_order_acquire);
	struct sockaddr_storage address;
	socklen_t length;

	if (peer && (peer == PEER_NONE ||
			atomic_load_explicit(&slot->rules, memory_order_relaxed) ==
			atomic_load_explicit(&fault_rules.generation, memory_order_relaxed)))
		return peer;
	if (own_calls_are_forbidden())
		return peer;
	length = socket_peer(fd, &address);
	if (length)
		return learn_peer(slot, (const struct sockaddr *)&address, length);
	atomic_store_explicit(&slot->peer, PEER_NONE, memory_order_release);
	return PEER_NONE;
}

bool datagram_is(int fd)
{
	const struct connection *connection = fd_table_find(fd);

	return (connection ? connection->kind : fd_table_kind(fd)) == FD_DATAGRAM;
}

/* So that waits ask about it before anything of it is looked at. */
static struct slot *begin(int fd, uint64_t now_ns)
{
	if (!rules_exist(FAULT_BOTH, now_ns))
		return NULL;
	if (rules_exist(FAULT_IN, now_ns))
		holds_expect();
	return datagram_track(fd);
}

/* What comes before anybody looks at it has its time, too: by then the kernel shall stamp it. */
void datagram_begins(int fd)
{
	uint64_t now_ns = clock_coarse_ns();

	if (begin(fd, now_ns) && late_rules_exist(now_ns))
		socket_datagram_age_ns(fd);
}

void datagram_peer_is(int fd, const struct sockaddr *address, socklen_t length)
{
	struct slot *slot = process_is_vfork_child() ? NULL : begin(fd, clock_coarse_ns());

	if (slot && endpoint_is_disconnect(address, length))
		atomic_store_explicit(&slot->peer, PEER_NONE, memory_order_release);
	else if (slot)
		learn_peer(slot, address, length);
}

/* It took system calls to tell the one that is struck from others. */
static void count_unseen(struct slot *slot)
{
	uint32_t count = slot_count(slot);

	for (uint32_t i = 0; i < count; i++) {
		struct fault_record *record = fault_rule_record(strike_rule(&slot->strikes[i]));

		if (!datagram_is_about(strike_fault(&slot->strikes[i]), FAULT_IN))
			continue;
		fault_record_matched(record);
		fault_record_suppressed(record, FAULT_BY_MODE);
	}
}

static bool may_receive(struct slot *slot, int fd)
{
	if (own_calls_are_forbidden()) {
		count_unseen(slot);
		return false;
	}
	return datagram_peer(slot, fd) != PEER_KNOWN;
}

bool datagram_is_concerned(int fd, enum fault_direction direction)
{
	uint64_t now_ns;
	struct slot *slot;

	if (!datagram_is(fd) || process_is_vfork_child())
		return false;
	now_ns = clock_coarse_ns();
	if (fault_rules_have_changed())
		fault_rules_refresh(now_ns);
	if (!rules_exist(direction == FAULT_IN ? FAULT_IN : FAULT_BOTH, now_ns))
		return false;
	slot = datagram_track(fd);
	return slot && (direction == FAULT_OUT || may_receive(slot, fd));
}
