/* SPDX-License-Identifier: MIT */
#include "core/control.h"

#include "core/notice.h"

static void tell(const struct breaker *breaker, enum event_kind kind, uint32_t detail,
		uint64_t now_ns)
{
	notice_write(breaker->events, breaker->cell, breaker->pid,
			(struct notice){ .kind = kind, .detail = detail }, now_ns);
}

static enum circuit_state set(const struct breaker *breaker, enum circuit_state state,
		uint64_t now_ns)
{
	return circuit_set(&breaker->cell->circuit, state, (uint32_t)(now_ns / 1000000));
}

void control_trip(const struct breaker *breaker, uint64_t now_ns)
{
	if (set(breaker, CIRCUIT_OPEN, now_ns) == CIRCUIT_CLOSED)
		cell_count(breaker->cell, CELL_TOTAL_trips);
	tell(breaker, EVENT_TRIPPED_BY_HAND, 0, now_ns);
}

void control_half(const struct breaker *breaker, uint64_t now_ns)
{
	set(breaker, CIRCUIT_HALF_OPEN, now_ns);
	tell(breaker, EVENT_HALF_OPENED, 0, now_ns);
}

void control_reset(const struct breaker *breaker, uint64_t now_ns)
{
	set(breaker, CIRCUIT_CLOSED, now_ns);
	tell(breaker, EVENT_RESET, 0, now_ns);
}

void control_force(const struct breaker *breaker, enum force force, uint64_t now_ns)
{
	atomic_store_explicit(&breaker->cell->override.force, (uint32_t)force,
			memory_order_relaxed);
	tell(breaker, EVENT_FORCED, force, now_ns);
	breaker_judge(breaker, now_ns);
}

void control_limit(const struct breaker *breaker, uint32_t concurrency)
{
	atomic_store_explicit(&breaker->cell->concurrency, concurrency, memory_order_relaxed);
}
