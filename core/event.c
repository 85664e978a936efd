/* SPDX-License-Identifier: MIT */
#include "core/event.h"

#include <stddef.h>
#include <string.h>

#include "core/words.h"

#define PAYLOAD_SIZE sizeof(((struct event_slot *)0)->words)

static_assert(EVENT_RING_SIZE * 192 + 64 == sizeof(struct event_ring), "no padding");

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[EVENT_COUNT] = {
		[EVENT_NONE] = "none",
		[EVENT_TRIPPED] = "tripped",
		[EVENT_HALF_OPENED] = "half_opened",
		[EVENT_REOPENED] = "reopened",
		[EVENT_CLOSED] = "closed",
		[EVENT_FORCED] = "forced",
		[EVENT_TRIPPED_BY_HAND] = "tripped_by_hand",
		[EVENT_RESET] = "reset",
		[EVENT_OVERFLOW] = "overflow",
		[EVENT_INJECTED] = "injected",
	};

	return (unsigned int)kind < EVENT_COUNT ? names[kind] : "?";
}

static uint64_t word_complete(uint64_t sequence)
{
	return sequence << 1;
}

static uint64_t word_busy(uint64_t sequence)
{
	return sequence << 1 | 1;
}

static struct event_slot *slot_of(const struct event_ring *ring, uint64_t sequence)
{
	return (struct event_slot *)&ring->slots[sequence % EVENT_RING_SIZE];
}

static uint64_t event_check(const struct event *event)
{
	return words_hash(event, sizeof(*event));
}

/*
 * Takes the slot for `sequence`, from whoever has it: an older writer is dead or a whole lap slow.
 * A newer one has lapped us; but a number that was never given out is garbage.
 */
static bool slot_claim(struct event_ring *ring, struct event_slot *slot, uint64_t sequence)
{
	uint64_t seen = atomic_load_explicit(&slot->sequence, memory_order_relaxed);

	do {
		uint64_t holder = seen >> 1;

		if (holder > sequence &&
				holder <= atomic_load_explicit(&ring->head, memory_order_relaxed))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&slot->sequence, &seen, word_busy(sequence),
		memory_order_acq_rel, memory_order_relaxed));
	return true;
}

void event_write(struct event_ring *ring, const struct event *event)
{
	uint64_t sequence =
		atomic_fetch_add_explicit(&ring->head, 1, memory_order_acq_rel) + 1;
	struct event_slot *slot = slot_of(ring, sequence);
	struct event numbered = *event;
	uint64_t check, busy = word_busy(sequence);
	const _Atomic uint64_t *guard = &slot->sequence;

	numbered.sequence = sequence;
	check = event_check(&numbered);
	if (!slot_claim(ring, slot, sequence) ||
			!words_store(slot->words, &numbered.time_ns, PAYLOAD_SIZE, guard, busy) ||
			!words_store(&slot->check, &check, sizeof(check), guard, busy))
		return;
	atomic_compare_exchange_strong_explicit(&slot->sequence, &busy, word_complete(sequence),
			memory_order_release, memory_order_relaxed);
}

static void event_clamp(struct event *event)
{
	words_text(event->name, sizeof(event->name));
	words_text(event->target, sizeof(event->target));
	event->is_lookup = !!event->is_lookup;
	if (event->kind >= EVENT_COUNT)
		event->kind = EVENT_NONE;
}

static bool slot_read(const struct event_slot *slot, uint64_t sequence, struct event *ret)
{
	uint64_t check;

	if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != word_complete(sequence))
		return false;
	ret->sequence = sequence;
	words_load(&ret->time_ns, slot->words, PAYLOAD_SIZE);
	check = atomic_load_explicit(&slot->check, memory_order_acquire);
	if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != word_complete(sequence))
		return false;
	return check == event_check(ret);
}

bool event_read(const struct event_ring *ring, uint64_t after, struct event *ret)
{
	uint64_t newest = event_newest(ring);
	uint64_t sequence = after;
	struct event event;

	if (newest > EVENT_RING_SIZE && sequence < newest - EVENT_RING_SIZE)
		sequence = newest - EVENT_RING_SIZE;
	while (sequence < newest) {
		sequence++;
		if (!slot_read(slot_of(ring, sequence), sequence, &event))
			continue;
		event_clamp(&event);
		*ret = event;
		return true;
	}
	return false;
}

uint64_t event_newest(const struct event_ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}
