/* SPDX-License-Identifier: MIT */
#include "shim/silence.h"

/* What the coarse clock can make of a poll that returned at once. */
#define TICK_NS 10000000ull

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

void silence_begin(struct silence *silence, uint64_t now_ns)
{
	silence_begin_call(silence, now_ns);
	store(&silence->established_ns, 0);
	store(&silence->greeting_ns, 0);
	store(&silence->waiting_ns, 0);
}

void silence_begin_call(struct silence *silence, uint64_t now_ns)
{
	store(&silence->active_ns, now_ns | SILENCE_UNBROKEN);
	store(&silence->longest_ns, 0);
}

void silence_lengthen(struct silence *silence, uint64_t stretch_ns)
{
	uint64_t longest_ns = load(&silence->longest_ns);

	while (stretch_ns > longest_ns && !atomic_compare_exchange_weak_explicit(
			&silence->longest_ns, &longest_ns, stretch_ns, memory_order_relaxed,
			memory_order_relaxed))
		;
}

void silence_establish(struct silence *silence, uint64_t now_ns)
{
	silence_break(silence, now_ns);
	store(&silence->established_ns, now_ns);
}

uint64_t silence_longest_ns(const struct silence *silence, uint64_t now_ns)
{
	uint64_t present_ns = clock_elapsed_ns(silence_active_ns(silence), now_ns);
	uint64_t longest_ns = load(&silence->longest_ns);

	return present_ns > longest_ns ? present_ns : longest_ns;
}

uint64_t silence_since_established_ns(const struct silence *silence, uint64_t now_ns)
{
	return clock_elapsed_ns(load(&silence->established_ns), now_ns);
}

void silence_wait_begins(struct silence *silence, uint64_t now_ns)
{
	store(&silence->waiting_ns, now_ns);
}

void silence_wait_ends(struct silence *silence, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t established_ns = load(&silence->established_ns);

	store(&silence->waiting_ns, 0);
	if (!began_ns)
		return;
	if (began_ns < established_ns)
		began_ns = established_ns;
	atomic_fetch_add_explicit(&silence->greeting_ns, clock_elapsed_ns(began_ns, now_ns),
			memory_order_relaxed);
}

uint64_t silence_greeting_ns(const struct silence *silence, uint64_t now_ns)
{
	uint64_t waiting_ns = load(&silence->waiting_ns);
	uint64_t present_ns = waiting_ns ? clock_elapsed_ns(waiting_ns, now_ns) : 0;

	return load(&silence->greeting_ns) + present_ns;
}
