/* SPDX-License-Identifier: MIT */
#include "core/breaker.h"

#include "core/meter.h"
#include "core/notice.h"
#include "core/policy.h"

#define USED_RESOLUTION_NS UINT64_C(1000000000)

static uint32_t to_ms(uint64_t ns)
{
	return (uint32_t)(ns / 1000000);
}

static enum force force_in_effect(const struct breaker *breaker)
{
	uint32_t by_hand =
			atomic_load_explicit(&breaker->cell->override.force, memory_order_relaxed);

	return by_hand == FORCE_OPEN || by_hand == FORCE_CLOSED ? (enum force)by_hand
								: breaker->settings->force;
}

static void store_if_new(_Atomic uint32_t *word, uint32_t value)
{
	if (atomic_load_explicit(word, memory_order_relaxed) != value)
		atomic_store_explicit(word, value, memory_order_relaxed);
}

/* For readers of the cell. Stores only what changed: the line stays shared between processes. */
static void note_use(struct cell *cell, const struct settings *settings, uint64_t now_ns)
{
	uint64_t used_ns = atomic_load_explicit(&cell->used_ns, memory_order_relaxed);

	if (now_ns - used_ns > USED_RESOLUTION_NS)
		atomic_store_explicit(&cell->used_ns, now_ns, memory_order_relaxed);
	store_if_new(&cell->lease_ms, settings->lease_ms);
	if (settings->backoff_factor_thousandths == 0)
		store_if_new(&cell->sleep_ms, settings->sleep_ms);
}

/* With backoff the sleep changes with every failed probe. */
static void note_sleep(struct cell *cell, const struct circuit_policy *policy)
{
	uint32_t epoch = circuit_read(&cell->circuit).epoch;

	store_if_new(&cell->sleep_ms, circuit_sleep_ms(&cell->circuit, policy, epoch));
}

/* Told to exactly one caller, so the event and the total are written once. */
static void announce(const struct breaker *breaker, enum transition transition,
		struct window_sum sum, uint64_t now_ns)
{
	static const enum event_kind kinds[] = {
			[TRANSITION_TRIPPED] = EVENT_TRIPPED,
			[TRANSITION_HALF_OPENED] = EVENT_HALF_OPENED,
			[TRANSITION_REOPENED] = EVENT_REOPENED,
			[TRANSITION_CLOSED] = EVENT_CLOSED,
	};

	if (transition == TRANSITION_NONE)
		return;
	if (transition == TRANSITION_TRIPPED)
		cell_count(breaker->cell, CELL_TOTAL_trips);
	notice_write(breaker->events, breaker->cell, breaker->pid,
			(struct notice){ kinds[transition], .sum = sum }, now_ns);
}

__attribute__((noinline)) static enum transition trip(
		const struct breaker *breaker, uint32_t epoch, uint64_t now_ns)
{
	struct window_sum sum = window_sum(
			&breaker->cell->outcomes, &breaker->settings->window, epoch, now_ns);

	if (circuit_trip(&breaker->cell->circuit, epoch, to_ms(now_ns)) == TRANSITION_NONE)
		return TRANSITION_NONE;
	announce(breaker, TRANSITION_TRIPPED, sum, now_ns);
	return TRANSITION_TRIPPED;
}

/* A closed circuit of that epoch: does what was counted trip it? */
static inline enum transition judge(const struct breaker *breaker, uint32_t epoch, uint64_t now_ns)
{
	return meter_trips(breaker->cell, breaker->settings, epoch, now_ns)
			       ? trip(breaker, epoch, now_ns)
			       : TRANSITION_NONE;
}

/* Permits are handed on by value, in a register: one that was written to memory in parts could be
 * read as a whole only after all parts have got there. */
static inline struct permit permit_of(enum permit_kind kind, uint32_t epoch)
{
	return (struct permit){.epoch = (uint16_t)epoch, .kind = (uint8_t)kind};
}

static struct permit refuse(const struct breaker *breaker)
{
	cell_count(breaker->cell, CELL_TOTAL_short_circuited);
	return permit_of(PERMIT_NONE, 0);
}

uint32_t breaker_concurrency(const struct breaker *breaker)
{
	return cell_concurrency(breaker->cell, breaker->settings->concurrency);
}

/* True where a place was taken, or none is needed. */
__attribute__((noinline)) static bool take_place(const struct breaker *breaker, place_t *ret_place)
{
	uint32_t limit = breaker_concurrency(breaker);
	struct bulkhead bulkhead;

	if (limit == 0 || breaker->holder == NULL)
		return true;
	bulkhead = bulkhead_of(breaker->holder, breaker->cell_hash, BULKHEAD_CALLS);
	return bulkhead_take(&bulkhead, breaker->holder, limit, ret_place) != BULKHEAD_FULL;
}

static void give_place(const struct breaker *breaker, place_t *place)
{
	if (*place != 0)
		place_give(breaker->holder->places, *place);
	*place = 0;
}

/* The circuit was seen open or half-open. Out of line: its frame is not for every call. */
__attribute__((noinline)) static struct permit acquire_probe(const struct breaker *breaker,
		uint64_t now_ns, uint64_t random, place_t *ret_place, struct decision *ret)
{
	struct cell *cell = breaker->cell;
	struct circuit_policy policy = policy_of(breaker->settings);
	struct permit permit;

	if (policy.backoff_factor_thousandths != 0)
		note_sleep(cell, &policy);
	if (!circuit_admits(&cell->circuit, &policy, to_ms(now_ns)))
		return refuse(breaker);
	/* Before the half-open slot, which a call without a place must not take. */
	if (!take_place(breaker, ret_place)) {
		ret->is_full = true;
		return permit_of(PERMIT_NONE, 0);
	}
	ret->transition = circuit_acquire(
			&cell->circuit, &policy, to_ms(now_ns), random, &permit);
	announce(breaker, ret->transition, (struct window_sum){0}, now_ns);
	if (permit.kind != PERMIT_NONE)
		return permit;
	give_place(breaker, ret_place);
	return refuse(breaker);
}

/* The circuit was seen closed, but time has passed since it was judged. Out of line as well. */
__attribute__((noinline)) static struct permit acquire_judged(const struct breaker *breaker,
		uint32_t epoch, uint64_t now_ns, uint64_t random, place_t *ret_place,
		struct decision *ret)
{
	struct circuit_view view;

	ret->transition = judge(breaker, epoch, now_ns);
	if (ret->transition != TRANSITION_NONE)
		return refuse(breaker);
	/* Whoever was faster has decided for this call too. */
	view = circuit_read(&breaker->cell->circuit);
	if (view.state != CIRCUIT_CLOSED)
		return acquire_probe(breaker, now_ns, random, ret_place, ret);
	return permit_of(PERMIT_NORMAL, view.epoch);
}

/* Still asleep, told without looking at the rest of the rule. Backoff only makes it longer. */
static bool is_asleep(const struct settings *settings, struct circuit_view view, uint64_t now_ns)
{
	return view.state == CIRCUIT_OPEN && settings->backoff_factor_thousandths == 0 &&
	       circuit_elapsed_ms(view.time_ms, to_ms(now_ns)) <= settings->sleep_ms;
}

/* All but the place of a call that is no probe. */
__attribute__((noinline)) static struct permit acquire(const struct breaker *breaker,
		uint64_t now_ns, uint64_t random, place_t *ret_place, struct decision *ret)
{
	const struct settings *settings = breaker->settings;
	struct cell *cell = breaker->cell;
	enum force force = force_in_effect(breaker);
	struct circuit_view view;

	store_if_new(&cell->override.by_rule, (uint32_t)settings->force);
	if (force == FORCE_OPEN)
		return refuse(breaker);
	if (!settings->enabled)
		return permit_of(PERMIT_UNMETERED, 0);
	note_use(cell, settings, now_ns);
	view = circuit_read(&cell->circuit);
	if (force == FORCE_CLOSED)
		return permit_of(PERMIT_NORMAL, view.epoch);
	if (view.state == CIRCUIT_CLOSED) {
		if (!window_has_moved(&cell->outcomes, &settings->window, now_ns))
			return permit_of(PERMIT_NORMAL, view.epoch);
		return acquire_judged(breaker, view.epoch, now_ns, random, ret_place, ret);
	}
	if (is_asleep(settings, view, now_ns))
		return refuse(breaker);
	return acquire_probe(breaker, now_ns, random, ret_place, ret);
}

/* An admitted call needs a place too. A permit that is no probe's leaves no trace until it is
 * reported. */
__attribute__((noinline)) static struct permit acquire_limited(const struct breaker *breaker,
		uint64_t now_ns, uint64_t random, place_t *ret_place, struct decision *ret)
{
	struct permit permit = acquire(breaker, now_ns, random, ret_place, ret);

	if (permit.kind == PERMIT_NONE || permit.kind == PERMIT_PROBE ||
			take_place(breaker, ret_place))
		return permit;
	ret->is_full = true;
	return permit_of(PERMIT_NONE, 0);
}

struct decision breaker_acquire(const struct breaker *breaker, uint64_t now_ns, uint64_t random,
		struct permit *ret_permit, place_t *ret_place)
{
	struct decision decision = {.is_admitted = false};

	*ret_place = 0;
	*ret_permit = breaker->holder == NULL
				      ? acquire(breaker, now_ns, random, ret_place, &decision)
				      : acquire_limited(breaker, now_ns, random, ret_place,
							&decision);
	decision.is_admitted = ret_permit->kind != PERMIT_NONE;
	return decision;
}

static const enum cell_total total_of[OUTCOME_COUNT] = {
		[OUTCOME_NONE] = CELL_TOTAL_COUNT,
		[OUTCOME_SUCCESS] = CELL_TOTAL_success,
		[OUTCOME_FAILURE] = CELL_TOTAL_failure,
		[OUTCOME_TIMEOUT] = CELL_TOTAL_timeout,
		[OUTCOME_REJECTED] = CELL_TOTAL_rejected,
		[OUTCOME_SHORT_CIRCUITED] = CELL_TOTAL_short_circuited,
		[OUTCOME_CANCELLED] = CELL_TOTAL_cancelled,
		[OUTCOME_IGNORED] = CELL_TOTAL_ignored,
		[OUTCOME_UNUSED] = CELL_TOTAL_unused,
};

static bool counts_in_window(const struct settings *settings, enum outcome outcome)
{
	return outcome_is_request(outcome) &&
	       (outcome != OUTCOME_REJECTED || settings->rejects_count);
}

static void record_latency(struct cell *cell, enum outcome outcome, uint64_t duration_ns)
{
	if (outcome == OUTCOME_SUCCESS || outcome == OUTCOME_FAILURE || outcome == OUTCOME_TIMEOUT)
		histogram_record(&cell->latency, duration_ns);
}

/* The circuit decides first: a late probe counts nowhere else. */
__attribute__((noinline)) static enum transition report_probe(const struct breaker *breaker,
		struct permit permit, enum outcome outcome, uint64_t duration_ns, uint64_t now_ns)
{
	const struct settings *settings = breaker->settings;
	struct cell *cell = breaker->cell;
	struct circuit_policy policy = policy_of(settings);
	struct probe_settlement settled = circuit_settle(&cell->circuit, &policy, permit,
			policy_probe_end(settings, outcome), meter_is_slow(settings, duration_ns),
			to_ms(now_ns));

	if (settled.is_late) {
		cell_count(cell, CELL_TOTAL_late);
		return TRANSITION_NONE;
	}
	cell_count(cell, total_of[outcome]);
	record_latency(cell, outcome, duration_ns);
	if (settled.transition == TRANSITION_NONE) {
		if (counts_in_window(settings, outcome))
			meter_record(cell, settings, permit.epoch, outcome_is_error(outcome),
					duration_ns, now_ns);
		return TRANSITION_NONE;
	}
	if (policy.backoff_factor_thousandths != 0)
		note_sleep(cell, &policy);
	announce(breaker, settled.transition, (struct window_sum){0}, now_ns);
	return settled.transition;
}

/* A call that was admitted by a closed circuit, and has come back within its epoch. */
__attribute__((noinline)) static enum transition report_normal(const struct breaker *breaker,
		struct circuit_view view, enum outcome outcome, uint64_t duration_ns,
		uint64_t now_ns)
{
	struct cell *cell = breaker->cell;
	bool is_counted = counts_in_window(breaker->settings, outcome);

	/* The window first: what it must load and compare runs beside what came before, but would
	 * wait for the locked steps of the counters. */
	if (is_counted)
		meter_record(cell, breaker->settings, view.epoch, outcome_is_error(outcome),
				duration_ns, now_ns);
	record_latency(cell, outcome, duration_ns);
	cell_count(cell, total_of[outcome]);
	if (!is_counted || view.state != CIRCUIT_CLOSED ||
			force_in_effect(breaker) == FORCE_CLOSED)
		return TRANSITION_NONE;
	return judge(breaker, view.epoch, now_ns);
}

enum transition breaker_reject(const struct breaker *breaker, enum cell_total reason,
		uint64_t now_ns)
{
	struct circuit_view view = circuit_read(&breaker->cell->circuit);

	if (reason != CELL_TOTAL_rejected)
		cell_count(breaker->cell, reason);
	return report_normal(breaker, view, OUTCOME_REJECTED, 0, now_ns);
}

enum transition breaker_report(const struct breaker *breaker, struct permit permit,
		enum outcome outcome, uint64_t duration_ns, uint64_t now_ns)
{
	struct circuit_view view;

	if ((unsigned int)outcome >= OUTCOME_COUNT)
		return TRANSITION_NONE;
	if (permit.kind == PERMIT_PROBE)
		return report_probe(breaker, permit, outcome, duration_ns, now_ns);
	if (permit.kind != PERMIT_NORMAL)
		return TRANSITION_NONE;
	view = circuit_read(&breaker->cell->circuit);
	if (view.epoch == permit.epoch)
		return report_normal(breaker, view, outcome, duration_ns, now_ns);
	cell_count(breaker->cell, CELL_TOTAL_late);
	return TRANSITION_NONE;
}

struct permit breaker_renew(const struct breaker *breaker, struct permit permit,
		uint32_t remaining_ms, uint64_t now_ns)
{
	struct circuit_policy policy = policy_of(breaker->settings);

	return circuit_renew(&breaker->cell->circuit, &policy, permit, remaining_ms, to_ms(now_ns));
}

enum transition breaker_wake(const struct breaker *breaker, uint64_t now_ns)
{
	struct circuit_policy policy = policy_of(breaker->settings);
	enum transition transition;

	if (force_in_effect(breaker) != FORCE_NONE)
		return TRANSITION_NONE;
	transition = circuit_wake(&breaker->cell->circuit, &policy, to_ms(now_ns));
	announce(breaker, transition, (struct window_sum){0}, now_ns);
	return transition;
}

uint64_t breaker_wake_time_ns(const struct breaker *breaker, uint64_t now_ns)
{
	struct circuit_policy policy = policy_of(breaker->settings);
	struct circuit_view view = circuit_read(&breaker->cell->circuit);
	uint32_t sleep_ms, elapsed_ms;

	if (view.state != CIRCUIT_OPEN || force_in_effect(breaker) != FORCE_NONE)
		return 0;
	sleep_ms = circuit_sleep_ms(&breaker->cell->circuit, &policy, view.epoch);
	elapsed_ms = circuit_elapsed_ms(view.time_ms, to_ms(now_ns));
	if (elapsed_ms > sleep_ms)
		return now_ns;
	/* Strictly after the sleep window: at the edge of the millisecond that follows it. */
	return (now_ns / 1000000 + (sleep_ms - elapsed_ms) + 1) * 1000000;
}

enum circuit_state breaker_state(const struct breaker *breaker, uint64_t now_ns)
{
	(void)now_ns;
	switch (force_in_effect(breaker)) {
	case FORCE_OPEN:
		return CIRCUIT_OPEN;
	case FORCE_CLOSED:
		return CIRCUIT_CLOSED;
	default:
		return circuit_read(&breaker->cell->circuit).state;
	}
}

enum transition breaker_judge(const struct breaker *breaker, uint64_t now_ns)
{
	struct circuit_view view = circuit_read(&breaker->cell->circuit);

	if (view.state != CIRCUIT_CLOSED || force_in_effect(breaker) != FORCE_NONE)
		return TRANSITION_NONE;
	return judge(breaker, view.epoch, now_ns);
}
