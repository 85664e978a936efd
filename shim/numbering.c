/* SPDX-License-Identifier: MIT */
#include "shim/numbering.h"

#include <pthread.h>

#include "shim/own_call.h"

#define TURN_SPINS 1000 /* then it sleeps */

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

/* The pthread_self() of who has the turn, and makes no system call meanwhile; 0: nobody. */
static _Atomic uintptr_t turn_of;

/* Who waits for it in vain goes on without, and gives it back: it may have been left for good, by
 * siglongjmp or a cancellation. So does a signal handler that interrupted its own thread there. */
static void turn_take(void)
{
	uintptr_t self = (uintptr_t)pthread_self();
	struct own_wait wait = { 0 };

	for (int i = 0;; i++) {
		uintptr_t owner = 0;

		if (atomic_compare_exchange_strong_explicit(&turn_of, &owner, self,
				memory_order_acquire, memory_order_relaxed) || owner == self)
			return;
		if (i >= TURN_SPINS && (own_calls_are_forbidden() || !own_wait_step(&wait)))
			return;
	}
}

static void turn_end(void)
{
	atomic_store_explicit(&turn_of, 0, memory_order_release);
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
