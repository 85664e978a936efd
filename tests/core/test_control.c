/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/control.h"

static struct cell cell;
static struct event_ring events;
static struct settings settings;
static struct breaker breaker = { .cell = &cell, .settings = &settings, .events = &events };

static void set_up(void)
{
	settings = settings_default;
	settings.volume = 4;
}

TestSuite(control, .init = set_up);

static uint64_t at(uint64_t ms)
{
	return (UINT64_C(1000000000) + ms) * 1000000;
}

static bool is_admitted(uint64_t ms)
{
	struct permit permit;

	return breaker_acquire(&breaker, at(ms), 0, &permit, &(place_t){ 0 }).is_admitted;
}

static struct permit acquire(uint64_t ms)
{
	struct permit permit;

	cr_assert(breaker_acquire(&breaker, at(ms), 0, &permit, &(place_t){ 0 }).is_admitted);
	return permit;
}

static void fail_four_times(uint64_t ms)
{
	for (int i = 0; i < 4; i++)
		breaker_report(&breaker, acquire(ms), OUTCOME_FAILURE, 0, at(ms));
}

static enum circuit_state state(uint64_t ms)
{
	return breaker_state(&breaker, at(ms));
}

Test(control, a_force_by_hand_beats_the_rule)
{
	settings.force = FORCE_OPEN;
	control_force(&breaker, FORCE_CLOSED, at(0));
	cr_expect(is_admitted(0));
	settings.force = FORCE_CLOSED;
	control_force(&breaker, FORCE_OPEN, at(1));
	cr_expect_not(is_admitted(1));
	control_force(&breaker, FORCE_NONE, at(2));
	cr_expect(is_admitted(2));
}

Test(control, lifting_a_force_shows_the_natural_state_at_once)
{
	control_force(&breaker, FORCE_CLOSED, at(0));
	fail_four_times(0);
	cr_expect_eq(state(0), CIRCUIT_CLOSED);
	control_force(&breaker, FORCE_NONE, at(1));
	cr_expect_eq(state(1), CIRCUIT_OPEN);
	control_force(&breaker, FORCE_CLOSED, at(2));
	cr_expect(is_admitted(3));
	control_force(&breaker, FORCE_NONE, at(4));
	cr_expect_not(is_admitted(5));
}

Test(control, a_limit_by_hand_beats_the_rule_until_it_is_lifted)
{
	settings.concurrency = 5;
	cr_expect_eq(breaker_concurrency(&breaker), 5);
	control_limit(&breaker, 2);
	cr_expect_eq(breaker_concurrency(&breaker), 2);
	control_limit(&breaker, CELL_UNLIMITED);
	cr_expect_eq(breaker_concurrency(&breaker), 0);
	control_limit(&breaker, 0);
	cr_expect_eq(breaker_concurrency(&breaker), 5);
}

Test(control, by_hand_it_trips_probes_and_resets)
{
	struct permit old = acquire(0);

	control_trip(&breaker, at(0));
	cr_expect_not(is_admitted(1));
	control_half(&breaker, at(2));
	cr_expect_eq(state(2), CIRCUIT_HALF_OPEN);
	control_reset(&breaker, at(3));
	cr_expect_eq(state(3), CIRCUIT_CLOSED);
	breaker_report(&breaker, old, OUTCOME_FAILURE, 0, at(4));
	cr_expect_eq(cell.totals[CELL_TOTAL_late], 1);
	cr_expect_eq(cell.totals[CELL_TOTAL_trips], 1);
}
