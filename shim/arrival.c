/* SPDX-License-Identifier: MIT */
#include "shim/arrival.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/deadline.h"
#include "shim/held_attempt.h"
#include "shim/hold.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"

/* Another thread is about to say until when. */
#define MOMENT_NS 1000000ull

#define READING (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR)

bool arrival_is_watched(struct slot *slot, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&slot->answer_due_ns, memory_order_relaxed);

	if (slot_has_kind(slot, FAULT_LATENCY))
		return true;
	if (!slot_has(slot, SLOT_ANSWERS))
		return false;
	if (!due_ns || due_ns > now_ns)
		return true;
	/* It was let go: what comes after it is none of ours. */
	slot_clear(slot, SLOT_ANSWERS);
	return false;
}

/* Carries out all of a kind that are armed; what they add up to. */
static uint64_t strike_delays(const struct sight *sight, enum fault_kind kind)
{
	uint32_t count = slot_count(sight->slot);
	uint64_t delay_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &sight->slot->strikes[i];

		if (strike_is(strike, STRIKE_ARMED) && strike_fault(strike)->kind == kind)
			delay_ns += inject_strikes_delay(sight, strike);
	}
	return delay_ns;
}

/* When what there is to read came, and not before it was asked for. */
static uint64_t arrived_ns(const struct sight *sight)
{
	uint64_t age_ns = socket_data_age_ns(sight->fd);
	uint64_t began_ns = atomic_load_explicit(&sight->slot->call_ns, memory_order_relaxed);

	if (age_ns > clock_elapsed_ns(began_ns, sight->now_ns))
		return began_ns < sight->now_ns ? began_ns : sight->now_ns;
	return sight->now_ns - age_ns;
}

/* Seen first by one thread, which says when it is due. */
static uint64_t due_ns(const struct sight *sight, uint32_t flag, enum fault_kind kind,
		_Atomic uint64_t *due)
{
	uint32_t flags = atomic_fetch_or_explicit(&sight->slot->flags, flag, memory_order_acq_rel);
	uint64_t when_ns, delay_ns;

	if (!(flags & flag)) {
		delay_ns = strike_delays(sight, kind);
		when_ns = delay_ns ? arrived_ns(sight) + delay_ns : sight->now_ns;
		atomic_store_explicit(due, when_ns, memory_order_relaxed);
	}
	when_ns = atomic_load_explicit(due, memory_order_relaxed);
	if (!when_ns)
		return sight->now_ns + MOMENT_NS;
	return when_ns > sight->now_ns && !own_calls_are_forbidden() ? when_ns : 0;
}

uint64_t arrival_answer_ns(const struct sight *sight)
{
	struct slot *slot = sight->slot;

	/* What is chosen for an attempt is that one's: another thread may wait meanwhile. */
	if (!arrival_is_watched(slot, sight->now_ns) ||
			exchange_has(&sight->connection->exchange, EXCHANGE_PENDING))
		return 0;
	return due_ns(sight, SLOT_ANSWERS, FAULT_LATENCY, &slot->answer_due_ns);
}

uint64_t arrival_end_ns(const struct sight *sight)
{
	struct slot *slot = sight->slot;

	if (!slot_has_kind(slot, FAULT_SLOWCLOSE) && !slot_has(slot, SLOT_LINGERS))
		return 0;
	return due_ns(sight, SLOT_LINGERS, FAULT_SLOWCLOSE, &slot->end_due_ns);
}

static void later(uint64_t *ret_ns, uint64_t until_ns)
{
	if (until_ns > *ret_ns)
		*ret_ns = until_ns;
}

static bool is_at_end(int fd)
{
	return socket_readiness(fd, POLLIN | POLLRDHUP) & POLLRDHUP && socket_queued(fd) == 0;
}

static void hold_rate(const struct sight *sight, struct hold_times *times)
{
	uint32_t count = slot_count(sight->slot);
	uint64_t rate, until_ns;

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &sight->slot->strikes[i];
		const struct fault *fault = strike_fault(strike);

		if (fault->kind != FAULT_RATE || !strike_is(strike, STRIKE_ON) ||
				inject_is_over(strike, sight->now_ns))
			continue;
		rate = strike_value(strike);
		if (fault->direction & FAULT_IN &&
				!pace_room(&strike->in, rate, sight->now_ns, &until_ns))
			later(&times->in_ns, until_ns);
		if (fault->direction & FAULT_OUT &&
				!pace_room(&strike->out, rate, sight->now_ns, &until_ns))
			later(&times->out_ns, until_ns);
	}
}

/* What was seen with news is held as long without. */
static void hold_arrivals(const struct sight *sight, uint32_t events, struct hold_times *times)
{
	struct slot *slot = sight->slot;
	bool is_news = events & READING;

	if (is_news || slot_has(slot, SLOT_ANSWERS))
		later(&times->in_ns, arrival_answer_ns(sight));
	if (slot_has(slot, SLOT_LINGERS) ||
			(is_news && slot_has_kind(slot, FAULT_SLOWCLOSE) && is_at_end(sight->fd)))
		later(&times->in_ns, arrival_end_ns(sight));
}

/* A call that takes too long is ended meanwhile: then it is asked again. */
static void hold_no_longer(uint64_t *until_ns, uint64_t deadline_ns, uint64_t now_ns)
{
	if (*until_ns > now_ns && *until_ns > deadline_ns)
		*until_ns = deadline_ns > now_ns ? deadline_ns : now_ns + MOMENT_NS;
}

static void hold_to_deadline(const struct sight *sight, struct hold_times *times)
{
	uint64_t due_ns = deadline_ns(sight->connection);

	if (!due_ns)
		return;
	hold_no_longer(&times->in_ns, due_ns, sight->now_ns);
	hold_no_longer(&times->out_ns, due_ns, sight->now_ns);
}

struct hold_times arrival_hold(int fd, uint32_t events, uint64_t now_ns)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot = connection ? slot_of(connection) : NULL;
	struct sight sight = { connection, slot, now_ns, fd, false };
	struct hold_times times = { 0, 0 };

	if (!slot || !slot_is_valid(slot, connection) ||
			slot_has(slot, SLOT_RESET | SLOT_CLOSED) || process_is_vfork_child() ||
			own_calls_are_forbidden() ||
			exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT))
		return times;
	later(&times.in_ns, held_attempt_ns(slot, now_ns));
	later(&times.out_ns, times.in_ns);
	if (slot_has(slot, SLOT_WAITS)) {
		later(&times.in_ns, atomic_load_explicit(&slot->in_until_ns, memory_order_relaxed));
		later(&times.out_ns,
				atomic_load_explicit(&slot->out_until_ns, memory_order_relaxed));
	}
	if (slot_kinds(slot) || slot_has(slot, SLOT_ANSWERS | SLOT_LINGERS)) {
		hold_arrivals(&sight, events, &times);
		hold_rate(&sight, &times);
	}
	if (deadline_applies(connection))
		hold_to_deadline(&sight, &times);
	return times;
}
