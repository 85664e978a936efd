/* SPDX-License-Identifier: MIT */
#include "core/breaker.h"
#include "core/control.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define START (UINT64_C(1000000000) * MS)

static struct cell cell;
static struct event_ring events;
static struct settings settings;
static struct breaker breaker;

static void set_up(void)
{
	settings = settings_default;
	settings.volume = 4;
	settings.sleep_ms = 5000;
	settings.lease_ms = 5000;
	breaker = (struct breaker){
		.cell = &cell, .settings = &settings, .events = &events, .pid = 77
	};
	strcpy(cell.key.name, "PAY");
	strcpy(cell.key.host, "pay.internal");
}

TestSuite(breaker, .init = set_up);

static uint64_t at(uint64_t ms)
{
	return START + ms * MS;
}

static uint64_t total(enum cell_total which)
{
	return atomic_load_explicit(&cell.totals[which], memory_order_relaxed);
}

static struct permit admitted(uint64_t ms)
{
	struct permit permit;

	cr_assert(breaker_acquire(&breaker, at(ms), 0, &permit, &(place_t){ 0 }).is_admitted);
	cr_assert_neq(permit.kind, PERMIT_NONE);
	return permit;
}

static void assert_refused(uint64_t ms)
{
	struct permit permit;

	cr_assert_not(breaker_acquire(&breaker, at(ms), 0, &permit, &(place_t){0})
					.is_admitted);
	cr_assert_eq(permit.kind, PERMIT_NONE);
}

static enum transition end(struct permit permit, enum outcome outcome, uint64_t ms)
{
	return breaker_report(&breaker, permit, outcome, MS, at(ms));
}

static enum transition call(enum outcome outcome, uint64_t ms)
{
	return end(admitted(ms), outcome, ms);
}

static void call_many(int n, enum outcome outcome, uint64_t ms)
{
	for (int i = 0; i < n; i++)
		call(outcome, ms);
}

static void assert_state(enum circuit_state state, uint64_t ms)
{
	enum circuit_state got = breaker_state(&breaker, at(ms));

	cr_assert_eq(got, state, "state %s", circuit_state_name(got));
}

static struct window_sum sum_at(uint64_t ms)
{
	return window_sum(&cell.outcomes, &settings.window, circuit_read(&cell.circuit).epoch,
			at(ms));
}

static void trip_at(uint64_t ms)
{
	call_many(4, OUTCOME_FAILURE, ms);
	assert_state(CIRCUIT_OPEN, ms);
}

Test(breaker, the_call_that_trips_is_told_so)
{
	call_many(2, OUTCOME_SUCCESS, 0);
	cr_assert_eq(call(OUTCOME_FAILURE, 1), TRANSITION_NONE);
	cr_assert_eq(call(OUTCOME_TIMEOUT, 2), TRANSITION_TRIPPED);
	assert_state(CIRCUIT_OPEN, 2);
	cr_assert_eq(total(CELL_TOTAL_trips), 1);
}

Test(breaker, a_success_that_reaches_the_volume_trips_too)
{
	call_many(3, OUTCOME_FAILURE, 0);
	cr_assert_eq(call(OUTCOME_SUCCESS, 0), TRANSITION_TRIPPED);
}

Test(breaker, only_requests_count)
{
	call_many(3, OUTCOME_FAILURE, 0);
	call_many(9, OUTCOME_CANCELLED, 0);
	call_many(9, OUTCOME_IGNORED, 0);
	call_many(9, OUTCOME_UNUSED, 0);
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(sum_at(0).total, 3);
	cr_assert_eq(total(CELL_TOTAL_cancelled), 9);
	cr_assert_eq(total(CELL_TOTAL_ignored), 9);
	cr_assert_eq(total(CELL_TOTAL_unused), 9);
}

Test(breaker, an_empty_window_never_trips)
{
	settings.volume = 0;
	settings.errors_ratio = 0;
	admitted(0);
	admitted(100000);
	assert_state(CIRCUIT_CLOSED, 100000);
}

Test(breaker, time_alone_may_trip_at_an_acquire)
{
	settings.volume = 2;
	settings.errors_ratio = RATIO_ONE;
	call(OUTCOME_SUCCESS, 0);
	call_many(2, OUTCOME_FAILURE, 2000);
	assert_state(CIRCUIT_CLOSED, 2000);
	admitted(9999);
	assert_refused(10000);
	assert_state(CIRCUIT_OPEN, 10000);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 1);
}

Test(breaker, a_refused_call_is_counted_and_in_no_window)
{
	trip_at(0);
	for (int i = 0; i < 10; i++)
		assert_refused(1);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 10);
	cr_assert_eq(sum_at(1).total, 4);
}

Test(breaker, one_probe_closes_with_an_empty_window)
{
	struct permit permit;

	trip_at(0);
	assert_refused(5000);
	permit = admitted(5001);
	assert_refused(5002);
	cr_assert_eq(end(permit, OUTCOME_SUCCESS, 5100), TRANSITION_CLOSED);
	cr_assert_eq(sum_at(5100).total, 0);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	call_many(3, OUTCOME_FAILURE, 5101);
	assert_state(CIRCUIT_CLOSED, 5101);
}

Test(breaker, a_late_result_counts_as_late_and_nothing_else)
{
	static const enum outcome outcomes[] = {
		OUTCOME_SUCCESS, OUTCOME_FAILURE, OUTCOME_CANCELLED, OUTCOME_UNUSED
	};
	struct permit old[4];

	for (size_t i = 0; i < 4; i++)
		old[i] = admitted(0);
	trip_at(1);
	end(admitted(5002), OUTCOME_SUCCESS, 5003);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(end(old[i], outcomes[i], 5004), TRANSITION_NONE);
	cr_assert_eq(total(CELL_TOTAL_late), 4);
	cr_assert_eq(total(CELL_TOTAL_success), 1);
	cr_assert_eq(total(CELL_TOTAL_failure), 4);
	cr_assert_eq(total(CELL_TOTAL_cancelled) + total(CELL_TOTAL_unused), 0);
	cr_assert_eq(sum_at(5004).total, 0);
}

Test(breaker, a_call_from_before_the_trip_counts_but_moves_nothing)
{
	struct permit old = admitted(0), probe;

	trip_at(1);
	probe = admitted(5002);
	cr_assert_eq(end(old, OUTCOME_SUCCESS, 5003), TRANSITION_NONE);
	assert_state(CIRCUIT_HALF_OPEN, 5003);
	cr_assert_eq(sum_at(5003).total, 5);
	cr_assert_eq(end(probe, OUTCOME_FAILURE, 5004), TRANSITION_REOPENED);
}

Test(breaker, a_superseded_failure_is_late_and_its_success_closes)
{
	struct permit first;

	trip_at(0);
	first = admitted(5001);
	admitted(10002);
	end(first, OUTCOME_TIMEOUT, 10003);
	cr_assert_eq(total(CELL_TOTAL_late), 1);
	cr_assert_eq(total(CELL_TOTAL_timeout), 0);
	assert_state(CIRCUIT_HALF_OPEN, 10003);
	cr_assert_eq(end(first, OUTCOME_SUCCESS, 10004), TRANSITION_CLOSED);
}

Test(breaker, a_slow_healthy_server_gets_its_circuit_closed)
{
	struct permit probe;

	settings.sleep_ms = settings.lease_ms = 1000;
	trip_at(0);
	probe = admitted(1001);
	for (uint64_t ms = 2002; ms < 7000; ms += 1001)
		admitted(ms);
	cr_assert_eq(end(probe, OUTCOME_SUCCESS, 7001), TRANSITION_CLOSED);
}

Test(breaker, nothing_is_a_permit_that_may_be_reported)
{
	cr_assert_eq(end((struct permit){ .kind = PERMIT_NONE }, OUTCOME_FAILURE, 0),
			TRANSITION_NONE);
	cr_assert_eq(end((struct permit){ .kind = 200 }, OUTCOME_FAILURE, 0), TRANSITION_NONE);
	cr_assert_eq(end(admitted(0), (enum outcome)99, 0), TRANSITION_NONE);
	for (int i = 0; i < CELL_TOTAL_COUNT; i++)
		cr_assert_eq(total((enum cell_total)i), 0);
}

Test(breaker, disabled_admits_and_leaves_no_trace)
{
	settings.enabled = false;
	call_many(20, OUTCOME_FAILURE, 0);
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(sum_at(0).total, 0);
	cr_assert_eq(total(CELL_TOTAL_failure), 0);
}

Test(breaker, forced_open_refuses_even_where_disabled)
{
	settings.force = FORCE_OPEN;
	settings.enabled = false;
	assert_refused(0);
	assert_refused(999999);
	assert_state(CIRCUIT_OPEN, 0);
	cr_assert_eq(total(CELL_TOTAL_short_circuited), 2);
}

Test(breaker, forced_closed_meters_and_does_not_trip)
{
	settings.force = FORCE_CLOSED;
	call_many(20, OUTCOME_FAILURE, 0);
	admitted(1500);
	assert_state(CIRCUIT_CLOSED, 1500);
	cr_assert_eq(sum_at(1500).errors, 20);
	cr_assert_eq(circuit_read(&cell.circuit).state, CIRCUIT_CLOSED);
}

Test(breaker, what_the_rule_forces_is_noted_for_status)
{
	struct permit permit;

	settings.force = FORCE_OPEN;
	breaker_acquire(&breaker, at(0), 0, &permit, &(place_t){ 0 });
	cr_assert_eq(atomic_load(&breaker.cell->override.by_rule), FORCE_OPEN);
	settings.force = FORCE_NONE;
	breaker_acquire(&breaker, at(1), 0, &permit, &(place_t){ 0 });
	cr_assert_eq(atomic_load(&breaker.cell->override.by_rule), FORCE_NONE);
}

Test(breaker, calls_under_a_forced_closed_open_circuit_do_not_move_it)
{
	trip_at(0);
	control_force(&breaker, FORCE_CLOSED, at(1));
	call(OUTCOME_SUCCESS, 6000);
	control_force(&breaker, FORCE_NONE, at(6001));
	assert_state(CIRCUIT_OPEN, 6001);
}

Test(breaker, failures_in_a_row_trip_below_the_volume)
{
	settings.volume = 1000;
	settings.consecutive = 3;
	call_many(2, OUTCOME_FAILURE, 0);
	call(OUTCOME_SUCCESS, 0);
	call_many(2, OUTCOME_FAILURE, 0);
	call(OUTCOME_CANCELLED, 0);
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(call(OUTCOME_FAILURE, 0), TRANSITION_TRIPPED);
	end(admitted(5001), OUTCOME_SUCCESS, 5001);
	call_many(2, OUTCOME_FAILURE, 5002);
	assert_state(CIRCUIT_CLOSED, 5002);
}

Test(breaker, slow_calls_trip_by_their_own_share)
{
	settings.slow_ns = MS;
	settings.slow_ratio = RATIO_ONE / 2;
	for (int i = 0; i < 3; i++) {
		breaker_report(&breaker, admitted(0), OUTCOME_SUCCESS, MS, at(0));
		cr_assert_eq(breaker_state(&breaker, at(0)), CIRCUIT_CLOSED);
	}
	for (int i = 0; i < 2; i++)
		breaker_report(&breaker, admitted(0), OUTCOME_SUCCESS, MS + 1, at(0));
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(breaker_report(&breaker, admitted(0), OUTCOME_SUCCESS, MS + 1, at(0)),
			TRANSITION_TRIPPED);
}

Test(breaker, rejections_count_unless_told_otherwise)
{
	call_many(3, OUTCOME_REJECTED, 0);
	cr_assert_eq(sum_at(0).errors, 3);
	settings.rejects_count = false;
	call_many(9, OUTCOME_REJECTED, 0);
	cr_assert_eq(sum_at(0).total, 3);
	cr_assert_eq(total(CELL_TOTAL_rejected), 12);
}

Test(breaker, the_volume_of_a_count_window_is_at_most_its_calls)
{
	settings.window = (struct window_shape){ .calls = 5 };
	settings.volume = 100;
	call_many(4, OUTCOME_FAILURE, 0);
	assert_state(CIRCUIT_CLOSED, 0);
	cr_assert_eq(call(OUTCOME_FAILURE, 0), TRANSITION_TRIPPED);
}

Test(breaker, latency_is_recorded_where_the_peer_took_part)
{
	static const enum outcome outcomes[] = {OUTCOME_SUCCESS, OUTCOME_FAILURE, OUTCOME_TIMEOUT,
			OUTCOME_CANCELLED, OUTCOME_UNUSED, OUTCOME_IGNORED, OUTCOME_REJECTED};

	settings.volume = 100;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
		breaker_report(&breaker, admitted(0), outcomes[i], (i + 1) * MS, at(0));
	cr_assert_float_eq(histogram_summarize(&cell.latency).max_ms, 3, 1e-9);
	cr_assert_float_eq(histogram_summarize(&cell.latency).mean_ms, 2, 1e-9);
}

Test(breaker, the_timer_does_what_the_next_acquire_would)
{
	cr_assert_eq(breaker_wake_time_ns(&breaker, at(0)), 0);
	trip_at(7);
	cr_assert_eq(breaker_wake_time_ns(&breaker, at(1000)), at(5008));
	cr_assert_eq(breaker_wake(&breaker, at(5008) - 1), TRANSITION_NONE);
	cr_assert_eq(breaker_wake(&breaker, at(5008)), TRANSITION_HALF_OPENED);
	assert_state(CIRCUIT_HALF_OPEN, 5008);
	cr_assert_eq(breaker_wake_time_ns(&breaker, at(5009)), 0);
	admitted(5009);
	assert_refused(5009);
}

Test(breaker, the_timer_leaves_a_forced_circuit_alone)
{
	trip_at(0);
	control_force(&breaker, FORCE_OPEN, at(1));
	cr_assert_eq(breaker_wake_time_ns(&breaker, at(6000)), 0);
	cr_assert_eq(breaker_wake(&breaker, at(6000)), TRANSITION_NONE);
	control_force(&breaker, FORCE_NONE, at(6001));
	cr_assert_eq(breaker_wake_time_ns(&breaker, at(6001)), at(6001));
}

Test(breaker, a_probe_without_traffic_holds_its_slot_for_as_long_as_it_asks)
{
	struct permit permit;

	trip_at(0);
	permit = breaker_renew(&breaker, admitted(5001), 1000, at(5001));
	assert_refused(6001);
	permit = breaker_renew(&breaker, permit, 0, at(6001));
	assert_refused(11001);
	cr_assert_eq(end(permit, OUTCOME_UNUSED, 11001), TRANSITION_NONE);
	admitted(11001);
}

Test(breaker, every_turn_of_the_circuit_is_an_event)
{
	static const uint32_t kinds[] = {
		EVENT_TRIPPED, EVENT_HALF_OPENED, EVENT_REOPENED, EVENT_HALF_OPENED, EVENT_CLOSED,
		EVENT_TRIPPED_BY_HAND, EVENT_HALF_OPENED, EVENT_RESET, EVENT_FORCED
	};
	struct event event;
	uint64_t after = 0;

	trip_at(0);
	end(admitted(5001), OUTCOME_FAILURE, 5001);
	end(admitted(10002), OUTCOME_SUCCESS, 10002);
	control_trip(&breaker, at(10003));
	control_half(&breaker, at(10003));
	control_reset(&breaker, at(10003));
	control_force(&breaker, FORCE_OPEN, at(10004));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		cr_assert(event_read(&events, after, &event));
		after = event.sequence;
		cr_assert_eq(event.kind, kinds[i], "event %zu is %u", i, event.kind);
		cr_assert_eq(event.pid, 77);
		cr_assert_str_eq(event.name, "PAY");
	}
	cr_assert_eq(event.detail, FORCE_OPEN);
	cr_assert_not(event_read(&events, after, &event));
}

Test(breaker, a_trip_tells_what_the_window_held)
{
	struct event event;

	cell.key.address = (struct address){ .bytes = { 10, 1, 2, 3 }, .family = 4 };
	cell.key.port = 443;
	call(OUTCOME_SUCCESS, 0);
	call_many(3, OUTCOME_FAILURE, 0);
	cr_assert(event_read(&events, 0, &event));
	cr_assert_eq(event.requests, 4);
	cr_assert_eq(event.errors, 3);
	cr_assert_eq(event.time_ns, at(0));
	cr_assert_str_eq(event.target, "pay.internal 10.1.2.3:443");
}

Test(breaker, without_a_ring_it_works_as_well)
{
	breaker.events = NULL;
	trip_at(0);
	end(admitted(5001), OUTCOME_SUCCESS, 5001);
	assert_state(CIRCUIT_CLOSED, 5001);
}

Test(breaker, the_cell_shows_the_sleep_in_effect)
{
	settings.backoff_factor_thousandths = 2000;
	settings.backoff_max_ms = 60000;
	trip_at(0);
	assert_refused(1);
	cr_assert_eq(atomic_load_explicit(&cell.sleep_ms, memory_order_relaxed), 5000);
	end(admitted(5001), OUTCOME_FAILURE, 5001);
	cr_assert_eq(atomic_load_explicit(&cell.sleep_ms, memory_order_relaxed), 10000);
	assert_refused(15001);
	admitted(15002);
	cr_assert_eq(atomic_load_explicit(&cell.lease_ms, memory_order_relaxed), 5000);
}

Test(breaker, use_is_noted_once_a_second)
{
	admitted(0);
	cr_assert_eq(atomic_load_explicit(&cell.used_ns, memory_order_relaxed), at(0));
	admitted(1000);
	cr_assert_eq(atomic_load_explicit(&cell.used_ns, memory_order_relaxed), at(0));
	admitted(1001);
	cr_assert_eq(atomic_load_explicit(&cell.used_ns, memory_order_relaxed), at(1001));
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fill_with_garbage(uint64_t *state)
{
	uint64_t words[sizeof(cell) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = next_random(state);
	memcpy((void *)&cell, words, sizeof(cell));
}

/* Twice, because a sleep of another boot may seem to have begun within the last minute. */
static bool gets_through(uint64_t *now_ns)
{
	struct permit permit;

	for (int i = 0; i < 4; i++) {
		*now_ns += 70000 * MS;
		if (breaker_acquire(&breaker, *now_ns, 0, &permit, &(place_t){0})
						.is_admitted) {
			breaker_report(&breaker, permit, OUTCOME_SUCCESS, MS, *now_ns);
			return true;
		}
	}
	return false;
}

Test(breaker, random_bytes_in_the_cell_wedge_nothing)
{
	uint64_t state = 88172645463325252u;

	for (int round = 0; round < 20000; round++) {
		uint64_t now_ns = next_random(&state) >> 8;
		struct permit permit;

		fill_with_garbage(&state);
		settings.backoff_factor_thousandths = round % 2 == 0 ? 0 : 1500;
		settings.backoff_max_ms = 60000;
		settings.slow_ns = round % 3 == 0 ? MS : 0;
		settings.consecutive = round % 5 == 0 ? 5 : 0;
		if (round % 4 == 0)
			settings.window = (struct window_shape){ .calls = 100 };
		else
			settings.window = settings_default.window;
		memcpy(&permit, &state, sizeof(permit));
		breaker_report(&breaker, permit, (enum outcome)(state % 12), state, now_ns);
		breaker_renew(&breaker, permit, (uint32_t)state, now_ns);
		breaker_state(&breaker, now_ns);
		breaker_wake_time_ns(&breaker, now_ns);
		breaker_wake(&breaker, now_ns);
		control_force(&breaker, FORCE_NONE, now_ns);
		cr_assert(gets_through(&now_ns));
	}
}

Test(breaker, garbage_settings_are_clamped)
{
	uint64_t state = 7;
	struct permit permit;

	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(settings) / sizeof(uint32_t); i++)
			((uint32_t *)&settings)[i] = (uint32_t)next_random(&state);
		settings.enabled = settings.rejects_count = true;
		breaker_acquire(&breaker, state, state, &permit, &(place_t){ 0 });
		breaker_report(&breaker, permit, OUTCOME_FAILURE, state, state);
	}
	set_up();
	control_reset(&breaker, at(0));
	admitted(0);
}
