/* SPDX-License-Identifier: MIT */
#include "core/fault_record.h"

#include <stddef.h>

#include "core/words.h"

#define COUNTERS_BEGIN offsetof(struct fault_record, connections)
#define COUNTERS_END offsetof(struct fault_record, name)

static_assert(COUNTERS_BEGIN % 8 == 0 && COUNTERS_END % 8 == 0, "counters are whole words");

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Stopped clocks and another boot's times count as long ago as well. */
bool fault_record_is_forgotten(const struct fault_record *record, uint64_t now_ns)
{
	return distance(now_ns, load(&record->used_ns)) > FAULT_FORGOTTEN_NS;
}

bool fault_record_is_over(const struct fault_record *record, uint64_t now_ns)
{
	uint64_t ends_ns = load(&record->ends_ns);

	return ends_ns && ends_ns <= now_ns;
}

bool fault_record_clear(struct fault_record *record, uint64_t key)
{
	return words_store((char *)record + COUNTERS_BEGIN, NULL, COUNTERS_END - COUNTERS_BEGIN,
			&record->key, key);
}

void fault_record_begin_anew(struct fault_record *record, uint64_t now_ns)
{
	fault_record_clear(record, load(&record->key));
	atomic_store_explicit(&record->began_ns, now_ns, memory_order_relaxed);
}

struct fault_counts fault_record_counts(const struct fault_record *record)
{
	struct fault_counts counts = {
		.seen = load(&record->seen),
		.matched = load(&record->matched),
		.injected = load(&record->injected),
		.unreported = load(&record->unreported),
	};

	for (int reason = 0; reason < FAULT_REASON_COUNT; reason++)
		counts.suppressed[reason] = load(&record->suppressed[reason]);
	return counts;
}

static void add_one(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

uint32_t fault_record_connection(struct fault_record *record, uint64_t now_ns)
{
	atomic_store_explicit(&record->used_ns, now_ns, memory_order_relaxed);
	return (uint32_t)atomic_fetch_add_explicit(&record->connections, 1,
		memory_order_relaxed) + 1;
}

/* The start of the stretch of `every` is taken by one alone. */
static bool take_stretch(struct fault_record *record, uint64_t every_ns, uint64_t now_ns)
{
	uint64_t struck_ns = load(&record->struck_ns);

	/* Who comes late must not turn it back; but a time far ahead is of another boot. */
	if (struck_ns && struck_ns > now_ns && struck_ns - now_ns <= FAULT_FORGOTTEN_NS)
		return false;
	if (struck_ns && struck_ns <= now_ns && now_ns - struck_ns < every_ns)
		return false;
	return atomic_compare_exchange_strong_explicit(&record->struck_ns, &struck_ns, now_ns,
		memory_order_relaxed, memory_order_relaxed);
}

static bool take_time(struct fault_record *record, uint32_t times)
{
	uint64_t injected = load(&record->injected);

	do {
		if (times && injected >= times)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&record->injected, &injected, injected + 1,
		memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool fault_record_strike(struct fault_record *record, const struct fault *fault, uint64_t now_ns)
{
	atomic_store_explicit(&record->used_ns, now_ns, memory_order_relaxed);
	if ((!fault->every_ns || take_stretch(record, fault->every_ns, now_ns)) &&
			take_time(record, fault->times))
		return true;
	fault_record_suppressed(record, FAULT_BY_TIMES);
	return false;
}

void fault_record_seen(struct fault_record *record)
{
	add_one(&record->seen);
}

void fault_record_matched(struct fault_record *record)
{
	add_one(&record->matched);
}

void fault_record_suppressed(struct fault_record *record, enum fault_reason reason)
{
	if ((unsigned int)reason < FAULT_REASON_COUNT)
		add_one(&record->suppressed[reason]);
}

void fault_record_unreported(struct fault_record *record)
{
	add_one(&record->unreported);
}

bool fault_record_is_news(struct fault_record *record, uint64_t now_ns)
{
	uint64_t told_ns = load(&record->told_ns);

	return (!told_ns || distance(told_ns, now_ns) >= FAULT_TOLD_NS) &&
			atomic_compare_exchange_strong_explicit(&record->told_ns, &told_ns, now_ns,
				memory_order_relaxed, memory_order_relaxed);
}

void fault_record_forget(struct fault_record *record)
{
	/* So far from any time that it is long ago. */
	atomic_store_explicit(&record->used_ns, UINT64_MAX, memory_order_relaxed);
}
