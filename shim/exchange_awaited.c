/* SPDX-License-Identifier: MIT */
#include "shim/exchange_awaited.h"

#include "core/clock.h"

void exchange_wait_begins(struct exchange *exchange, uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange);

	if (exchange_flags_are_silent(flags) || (flags & EXCHANGE_DEADLINE))
		silence_wait_begins(&exchange->silence, now_ns);
}

void exchange_wait_ends(struct exchange *exchange, uint64_t began_ns, uint64_t now_ns)
{
	bool was_awaited = exchange_flags_are_silent(exchange_flags(exchange));

	silence_wait_ends(&exchange->silence, was_awaited ? began_ns : 0, now_ns);
}

/* A wait in progress, put back by all that were before it: they add up. */
static uint64_t greeting_since_ns(const struct exchange *exchange)
{
	uint64_t waiting_ns = silence_waiting_ns(&exchange->silence);

	return waiting_ns ? clock_elapsed_ns(silence_waits_ns(&exchange->silence), waiting_ns) : 0;
}

static uint64_t tls_awaited_since_ns(const struct exchange *exchange, uint64_t moved_ns)
{
	uint64_t waiting_ns = silence_waiting_ns(&exchange->silence);

	switch (tls_turn(&exchange->tls)) {
	case TLS_TURN_OF_SERVER:
		return moved_ns;
	case TLS_TURN_UNKNOWN:
		return waiting_ns && waiting_ns < moved_ns ? moved_ns : waiting_ns;
	default:
		return 0;
	}
}

uint64_t exchange_awaited_since_ns(const struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);
	uint64_t moved_ns = atomic_load_explicit(&exchange->moved_ns, memory_order_relaxed);

	if (!(flags & EXCHANGE_OPEN))
		return 0;
	if (exchange_flags_are_silent(flags))
		return greeting_since_ns(exchange);
	if (exchange_flags_await_tls(flags) && !(flags & EXCHANGE_PENDING))
		return tls_awaited_since_ns(exchange, moved_ns);
	return moved_ns;
}

void exchange_moved(struct exchange *exchange, uint64_t now_ns)
{
	uint64_t moved_ns = atomic_load_explicit(&exchange->moved_ns, memory_order_relaxed);

	while (moved_ns < now_ns && !atomic_compare_exchange_weak_explicit(&exchange->moved_ns,
			&moved_ns, now_ns, memory_order_relaxed, memory_order_relaxed))
		;
}

/* seq_cst: who sends counts itself in and then looks for TIMED_OUT; who sets that looks then for
 * senders. */
bool exchange_expiring(struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	do {
		if (!(flags & EXCHANGE_OPEN))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&exchange->flags, &flags,
			flags | EXCHANGE_EXPIRING, memory_order_seq_cst, memory_order_acquire));
	return true;
}

/* Whoever ends a call takes its mark away in the same step: where it still is, the call is. */
struct exchange_step exchange_expire(struct exchange *exchange, bool is_enforced)
{
	const uint32_t call = EXCHANGE_OPEN | EXCHANGE_EXPIRING;
	uint32_t flags = exchange_flags(exchange), after;

	do {
		if ((flags & call) != call)
			return (struct exchange_step){ .ended = OUTCOME_NONE };
		after = (flags & ~(call | EXCHANGE_PENDING | EXCHANGE_SENT)) |
				(is_enforced ? EXCHANGE_TIMED_OUT : 0);
	} while (!atomic_compare_exchange_weak_explicit(&exchange->flags, &flags, after,
			memory_order_seq_cst, memory_order_acquire));
	return (struct exchange_step){ .ended = OUTCOME_TIMEOUT };
}
