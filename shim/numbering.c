/* SPDX-License-Identifier: MIT */
#include "shim/numbering.h"

#include <sys/syscall.h>

#include "shim/own_call.h"
#include "shim/raw.h"

#define TURN_TRIES 1000

struct strike *numbering_add(struct slot *slot, uint32_t rule, uint64_t now_ns)
{
	struct strike *strike = slot_room(slot);

	if (!strike) {
		fault_record_suppressed(fault_rule_record(fault_rule_at(rule)), FAULT_IMPOSSIBLE);
		return NULL;
	}
	atomic_store_explicit(&strike->rule, rule, memory_order_relaxed);
	atomic_store_explicit(&strike->connection,
			fault_rule_connection(fault_rule_at(rule), now_ns), memory_order_relaxed);
	slot_add(slot, strike);
	return strike;
}

/* Whoever has the turn makes no system call meanwhile; who waits for it in vain goes on without (a
 * signal handler that interrupted that thread), and gives it back: it may have been left for good,
 * by siglongjmp or a cancellation. */
static _Atomic bool is_taken;

static void turn_take(void)
{
	for (int i = 0; i < TURN_TRIES; i++) {
		if (!atomic_exchange_explicit(&is_taken, true, memory_order_acquire))
			return;
		if (own_calls_begin()) {
			raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
			own_calls_end();
		}
	}
}

static void turn_end(void)
{
	atomic_store_explicit(&is_taken, false, memory_order_release);
}

void numbering_add_all(struct slot *slot, const uint32_t *rules, uint32_t count, uint64_t now_ns)
{
	turn_take();
	for (uint32_t i = 0; i < count; i++)
		numbering_add(slot, rules[i], now_ns);
	turn_end();
}

void numbering_forked(void)
{
	turn_end();
}
