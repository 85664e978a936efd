/* SPDX-License-Identifier: MIT */
#include "shim/adoption.h"

#include <errno.h>

#include "shim/call.h"
#include "shim/fault_rules.h"
#include "shim/fd_table.h"
#include "shim/socket_ask.h"

#define IN_MID_LIFE (EXCHANGE_ESTABLISHED | EXCHANGE_ANSWERED | EXCHANGE_SPOKEN)

/* fault_rules.generation that was looked at. */
static _Atomic uint64_t looked_at;

/* The environment's rules were there when it was connected, if it was by us. */
static bool is_concerned(int fd, uint64_t now_ns)
{
	struct sockaddr_storage peer;
	socklen_t length = socket_peer(fd, &peer);
	uint32_t rules[FAULT_TOGETHER_MAX], count;

	if (!length)
		return false;
	count = fault_rules_match_peer((struct sockaddr *)&peer, length, FAULT_TCP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (fault_rule_at(rules[i])->is_added)
			return true;
	}
	return false;
}

/* Its next send begins a call. Which rules those are is asked again when it is used. */
static void adopt(int fd, uint64_t now_ns)
{
	const struct exchange exchange = { .flags = IN_MID_LIFE, .began_ns = now_ns };
	struct connection *connection = fd_table_adopt(fd, &exchange);
	struct sockaddr_storage peer;

	/* Another socket may stand there by now, which has yet to connect. */
	if (connection && !socket_peer(fd, &peer))
		call_end(fd_table_set(fd, connection->kind));
}

static bool is_stream(enum fd_kind kind)
{
	return kind == FD_STREAM || kind == FD_STREAM6;
}

static void look_at(int fd, uint64_t now_ns)
{
	struct connection *connection = fd_table_find(fd);

	/* Here for its SO_RCVTIMEO alone, if it has a peer: its connect() was not seen. */
	if (connection && is_stream(connection->kind) &&
			exchange_is_new_attempt(&connection->exchange)) {
		if (is_concerned(fd, now_ns))
			exchange_set(&connection->exchange, IN_MID_LIFE);
	} else if (is_stream(fd_table_kind(fd)) && is_concerned(fd, now_ns)) {
		adopt(fd, now_ns);
	}
}

static bool any_was_added(uint64_t now_ns)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		struct fault_rule *rule = fault_rule_at(i);

		if (rule->is_added && !rule->fault.is_lookup &&
				rule->fault.protocol == FAULT_TCP &&
				!fault_rule_is_over(rule, now_ns))
			return true;
	}
	return false;
}

__attribute__((noinline)) static void look_at_all(uint64_t now_ns)
{
	uint32_t end = any_was_added(now_ns) ? fd_table_end() : 0;

	for (uint32_t fd = 0; fd < end; fd++)
		look_at((int)fd, now_ns);
}

void adoption_refresh(uint64_t now_ns)
{
	uint64_t known = atomic_load_explicit(&looked_at, memory_order_relaxed), generation;
	int error = errno;

	fault_rules_refresh(now_ns);
	generation = atomic_load_explicit(&fault_rules.generation, memory_order_acquire);
	if (known != generation && atomic_compare_exchange_strong_explicit(&looked_at, &known,
						   generation, memory_order_relaxed,
						   memory_order_relaxed))
		look_at_all(now_ns);
	errno = error;
}
