/* SPDX-License-Identifier: MIT */
#include "core/circuit.h"

#define RATIO_MILLION 1000000u
/* A tripped_epoch this little ahead was stored for a trip that has just happened. */
#define MAX_EPOCH_RACE 64u

const char *circuit_state_name(enum circuit_state state)
{
	switch (state) {
	case CIRCUIT_OPEN:
		return "open";
	case CIRCUIT_HALF_OPEN:
		return "half_open";
	default:
		return "closed";
	}
}

static uint64_t pack(struct circuit_view view)
{
	return (uint64_t)view.state << 62 | (uint64_t)view.epoch << 48 |
		(uint64_t)view.time_ms << 16 | view.issued << 12 | view.ok << 8 | view.bad << 4 |
		view.slow;
}

/* Acquire: as in circuit_read(). */
static uint64_t load_word(const struct circuit *circuit)
{
	return atomic_load_explicit(&circuit->word, memory_order_acquire);
}

/* Release for the same reason; on failure *seen is the word to decide on next. */
static bool replace_word(struct circuit *circuit, uint64_t *seen, struct circuit_view after)
{
	return atomic_compare_exchange_weak_explicit(&circuit->word, seen, pack(after),
		memory_order_acq_rel, memory_order_acquire);
}

/* A decider whose clock lags must not shorten the sleep or lease that begins now. (Not for a closed
 * circuit: its time may be so old that it looks like the future.) */
static uint32_t later_ms(uint32_t time_ms, uint32_t now_ms)
{
	return circuit_elapsed_ms(time_ms, now_ms) == 0 ? time_ms : now_ms;
}

static uint32_t failed_probes(const struct circuit *circuit, uint32_t epoch)
{
	uint32_t tripped = atomic_load_explicit(&circuit->tripped_epoch, memory_order_relaxed);
	uint32_t behind = (epoch - tripped) & CIRCUIT_EPOCH_MASK;

	return behind > CIRCUIT_EPOCH_MASK - MAX_EPOCH_RACE ? 0 : behind;
}

static uint32_t grown_sleep_ms(const struct circuit_policy *policy, uint32_t failures)
{
	uint64_t max_ms = policy->backoff_max_ms;
	uint64_t sleep_ms = policy->sleep_ms;

	if (sleep_ms >= max_ms)
		return policy->sleep_ms;
	while (failures-- > 0 && sleep_ms < max_ms)
		sleep_ms = (sleep_ms * policy->backoff_factor_thousandths + 999) / 1000;
	return (uint32_t)(sleep_ms < max_ms ? sleep_ms : max_ms);
}

uint32_t circuit_sleep_ms(const struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t epoch)
{
	if (policy->backoff_factor_thousandths <= 1000)
		return policy->sleep_ms;
	return grown_sleep_ms(policy, failed_probes(circuit, epoch));
}

static bool sleep_is_over(const struct circuit *circuit, const struct circuit_policy *policy,
		struct circuit_view view, uint32_t now_ms)
{
	uint32_t elapsed_ms = circuit_elapsed_ms(view.time_ms, now_ms);

	return elapsed_ms > policy->sleep_ms &&
		elapsed_ms > circuit_sleep_ms(circuit, policy, view.epoch);
}

static bool has_slot(const struct circuit_policy *policy, struct circuit_view view,
		uint32_t now_ms)
{
	if (policy->probes_ratio != 0 || view.issued < policy->probes)
		return true;
	return policy->lease_ms != 0 &&
		circuit_elapsed_ms(view.time_ms, now_ms) > policy->lease_ms;
}

bool circuit_admits(const struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms)
{
	struct circuit_view view = circuit_read(circuit);

	if (view.state == CIRCUIT_OPEN)
		return sleep_is_over(circuit, policy, view, now_ms);
	return view.state == CIRCUIT_CLOSED || has_slot(policy, view, now_ms);
}

/* Closed, or open again after a failed probe: what the old epoch still has to tell is late. */
static struct circuit_view view_next_epoch(struct circuit_view view, enum circuit_state state,
		uint32_t now_ms)
{
	return (struct circuit_view){
		.state = state,
		.epoch = (view.epoch + 1) & CIRCUIT_EPOCH_MASK,
		.time_ms = later_ms(view.time_ms, now_ms),
	};
}

static struct circuit_view view_half_opened(struct circuit_view view, uint32_t now_ms)
{
	return (struct circuit_view){
		.state = CIRCUIT_HALF_OPEN,
		.epoch = view.epoch,
		.time_ms = now_ms,
	};
}

static enum permit_kind draw_probe(const struct circuit_policy *policy, uint64_t random)
{
	uint64_t drawn = (uint64_t)((unsigned __int128)random * RATIO_MILLION >> 64);

	return drawn < policy->probes_ratio ? PERMIT_PROBE : PERMIT_NONE;
}

/* A half-open circuit, after one caller asked for a slot. The slot of a lost probe is given away
 * without counting it as issued: success of either closes. */
static struct circuit_view view_after_request(struct circuit_view view,
		const struct circuit_policy *policy, uint32_t now_ms, uint64_t random,
		enum permit_kind *ret_kind)
{
	*ret_kind = PERMIT_NONE;
	if (policy->probes_ratio != 0) {
		*ret_kind = draw_probe(policy, random);
		return view;
	}
	if (!has_slot(policy, view, now_ms))
		return view;
	*ret_kind = PERMIT_PROBE;
	if (view.issued < policy->probes)
		view.issued++;
	view.time_ms = later_ms(view.time_ms, now_ms);
	return view;
}

static struct permit make_permit(enum permit_kind kind, struct circuit_view view)
{
	if (kind == PERMIT_NONE)
		return (struct permit){ .kind = PERMIT_NONE };
	return (struct permit){
		.issued_ms = view.time_ms,
		.epoch = (uint16_t)view.epoch,
		.kind = (uint8_t)kind,
	};
}

enum transition circuit_acquire(struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms, uint64_t random, struct permit *ret_permit)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view before, after;
	enum permit_kind kind;

	do {
		before = after = circuit_unpack(seen);
		if (before.state == CIRCUIT_CLOSED) {
			*ret_permit = make_permit(PERMIT_NORMAL, before);
			return TRANSITION_NONE;
		}
		*ret_permit = make_permit(PERMIT_NONE, before);
		if (before.state == CIRCUIT_OPEN) {
			if (!sleep_is_over(circuit, policy, before, now_ms))
				return TRANSITION_NONE;
			after = view_half_opened(before, now_ms);
		}
		after = view_after_request(after, policy, now_ms, random, &kind);
		if (pack(after) == seen && kind == PERMIT_NONE)
			return TRANSITION_NONE;
	} while (!replace_word(circuit, &seen, after));
	*ret_permit = make_permit(kind, after);
	return before.state == CIRCUIT_OPEN ? TRANSITION_HALF_OPENED : TRANSITION_NONE;
}

enum transition circuit_wake(struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view before;

	do {
		before = circuit_unpack(seen);
		if (before.state != CIRCUIT_OPEN || !sleep_is_over(circuit, policy, before, now_ms))
			return TRANSITION_NONE;
	} while (!replace_word(circuit, &seen, view_half_opened(before, now_ms)));
	return TRANSITION_HALF_OPENED;
}

/* Before the trip itself, so that whoever sees the open circuit finds its backoff at the start.
 * Only forward: a slow caller must not undo a later trip. */
static void note_trip(struct circuit *circuit, uint32_t epoch)
{
	uint32_t seen = atomic_load_explicit(&circuit->tripped_epoch, memory_order_relaxed);

	do {
		uint32_t ahead = (seen - epoch) & CIRCUIT_EPOCH_MASK;

		if (seen == epoch || (ahead != 0 && ahead < MAX_EPOCH_RACE))
			return;
	} while (!atomic_compare_exchange_weak_explicit(&circuit->tripped_epoch, &seen, epoch,
		memory_order_relaxed, memory_order_relaxed));
}

enum transition circuit_trip(struct circuit *circuit, uint32_t epoch, uint32_t now_ms)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view before;

	note_trip(circuit, epoch);
	do {
		before = circuit_unpack(seen);
		if (before.state != CIRCUIT_CLOSED || before.epoch != epoch)
			return TRANSITION_NONE;
	} while (!replace_word(circuit, &seen, (struct circuit_view){
		.state = CIRCUIT_OPEN,
		.epoch = before.epoch,
		.time_ms = now_ms,
	}));
	return TRANSITION_TRIPPED;
}

/* Another probe was issued after the lease of this one. Signed: a renewed lease moves time back. */
static bool is_superseded(struct circuit_view view, const struct circuit_policy *policy,
		struct permit permit)
{
	int32_t newer_ms = (int32_t)(view.time_ms - permit.issued_ms);

	return policy->lease_ms != 0 && newer_ms > 0 && (uint32_t)newer_ms > policy->lease_ms;
}

static uint32_t add_to_nibble(uint32_t count, bool more)
{
	return count < 15 ? count + more : count;
}

static struct circuit_view view_released(struct circuit_view view, bool is_superseded_probe)
{
	if (view.issued > 0 && !is_superseded_probe)
		view.issued--;
	return view;
}

/* All probes have answered: by the share of bad and of slow ones. */
static struct circuit_view view_judged(struct circuit_view view,
		const struct circuit_policy *policy, uint32_t now_ms)
{
	uint64_t answers = view.ok + view.bad;

	if (answers < policy->probes)
		return view;
	if ((uint64_t)view.bad * RATIO_MILLION >= policy->errors_ratio * answers ||
			(uint64_t)view.slow * RATIO_MILLION >= policy->slow_ratio * answers)
		return view_next_epoch(view, CIRCUIT_OPEN, now_ms);
	return view_next_epoch(view, CIRCUIT_CLOSED, now_ms);
}

static struct circuit_view view_answered(struct circuit_view view,
		const struct circuit_policy *policy, bool is_bad, bool is_slow, uint32_t now_ms)
{
	if (policy->probes_ratio != 0)
		return is_bad ? view : view_next_epoch(view, CIRCUIT_CLOSED, now_ms);
	if (is_bad && !policy->judges_by_rate)
		return view_next_epoch(view, CIRCUIT_OPEN, now_ms);
	view.ok = add_to_nibble(view.ok, !is_bad);
	view.bad = add_to_nibble(view.bad, is_bad);
	view.slow = add_to_nibble(view.slow, is_slow);
	if (policy->judges_by_rate)
		return view_judged(view, policy, now_ms);
	if (view.ok < policy->probes)
		return view;
	return view_next_epoch(view, CIRCUIT_CLOSED, now_ms);
}

/* A half-open circuit of the permit's own epoch, after the end of a probe that is not late. */
static struct circuit_view view_after_probe(struct circuit_view view,
		const struct circuit_policy *policy, struct permit permit, enum probe_end end,
		bool is_slow, uint32_t now_ms)
{
	switch (end) {
	case PROBE_OK:
	case PROBE_BAD:
		return view_answered(view, policy, end == PROBE_BAD, is_slow, now_ms);
	case PROBE_NEUTRAL:
		if (policy->probes_ratio != 0)
			return view;
		if (!policy->releases_neutral)
			return view_next_epoch(view, CIRCUIT_OPEN, now_ms);
		break;
	case PROBE_UNUSED:
		break;
	}
	return view_released(view, is_superseded(view, policy, permit));
}

static enum transition transition_between(enum circuit_state before, enum circuit_state after)
{
	if (before != CIRCUIT_HALF_OPEN || after == CIRCUIT_HALF_OPEN)
		return TRANSITION_NONE;
	return after == CIRCUIT_CLOSED ? TRANSITION_CLOSED : TRANSITION_REOPENED;
}

struct probe_settlement circuit_settle(struct circuit *circuit, const struct circuit_policy *policy,
		struct permit permit, enum probe_end end, bool is_slow, uint32_t now_ms)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view before, after;

	do {
		before = circuit_unpack(seen);
		if (before.epoch != permit.epoch)
			return (struct probe_settlement){ .is_late = true };
		if (before.state != CIRCUIT_HALF_OPEN)
			return (struct probe_settlement){ .is_late = false };
		if ((end == PROBE_BAD || end == PROBE_NEUTRAL) &&
				is_superseded(before, policy, permit))
			return (struct probe_settlement){ .is_late = true };
		after = view_after_probe(before, policy, permit, end, is_slow, now_ms);
	} while (!replace_word(circuit, &seen, after));
	return (struct probe_settlement){
		.transition = transition_between(before.state, after.state),
	};
}

struct permit circuit_renew(struct circuit *circuit, const struct circuit_policy *policy,
		struct permit permit, uint32_t remaining_ms, uint32_t now_ms)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view view;

	if (permit.kind != PERMIT_PROBE || policy->lease_ms == 0 || policy->probes_ratio != 0)
		return permit;
	if (remaining_ms == 0 || remaining_ms > policy->lease_ms)
		remaining_ms = policy->lease_ms;
	do {
		view = circuit_unpack(seen);
		if (view.state != CIRCUIT_HALF_OPEN || view.epoch != permit.epoch ||
				view.time_ms != permit.issued_ms)
			return permit;
		view.time_ms = now_ms + remaining_ms - policy->lease_ms;
	} while (!replace_word(circuit, &seen, view));
	return make_permit(PERMIT_PROBE, view);
}

static struct circuit_view view_set(struct circuit_view view, enum circuit_state state,
		uint32_t now_ms)
{
	bool ends_epoch = state == CIRCUIT_CLOSED || view.state == CIRCUIT_HALF_OPEN;

	return (struct circuit_view){
		.state = state,
		.epoch = (view.epoch + ends_epoch) & CIRCUIT_EPOCH_MASK,
		.time_ms = now_ms,
	};
}

enum circuit_state circuit_set(struct circuit *circuit, enum circuit_state state, uint32_t now_ms)
{
	uint64_t seen = load_word(circuit);
	struct circuit_view before, after;

	do {
		before = circuit_unpack(seen);
		after = view_set(before, state, now_ms);
		if (state == CIRCUIT_OPEN)
			note_trip(circuit, after.epoch);
	} while (!replace_word(circuit, &seen, after));
	return before.state;
}
