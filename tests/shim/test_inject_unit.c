/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include "shim/inject_unit.h"
#include "shim/own_call.h"

TestSuite(inject_unit, .timeout = 60);

#define NOW_NS (1000 * CLOCK_SECOND_NS)

static struct inject_unit begin(const char *rules)
{
	faults_open(SOCK_STREAM);
	faults_start(rules);
	return (struct inject_unit){ .rule = fault_rule_at(0), .unit = { 1, 1 } };
}

static uint64_t events(void)
{
	return event_newest(&runtime.segment->events);
}

Test(inject_unit, it_is_chosen_and_then_told_as_often_as_it_may_strike)
{
	struct inject_unit unit = begin("fault A = 127.0.0.1:PORT refuse times=1\n");
	struct fault_choice choice = inject_unit_choose(&unit, NOW_NS);

	cr_expect_eq(choice.reason, FAULT_STRIKES);
	cr_expect_eq(injected(0), 0, "it has not struck yet");
	cr_expect(inject_unit_strikes(&unit, choice.value, NOW_NS));
	cr_expect_eq(injected(0), 1);
	cr_expect_not(inject_unit_strikes(&unit, choice.value, NOW_NS));
	cr_expect_eq(injected(0), 1);
	cr_expect_eq(suppressed(0, FAULT_BY_TIMES), 1);
}

Test(inject_unit, one_that_is_not_chosen_is_counted)
{
	struct inject_unit unit = begin("fault A = 127.0.0.1:PORT refuse calls=2\n");

	cr_expect_eq(inject_unit_choose(&unit, NOW_NS).reason, FAULT_BY_NUMBER);
	cr_expect_eq(suppressed(0, FAULT_BY_NUMBER), 1);
	unit.unit.connection = 2;
	cr_expect_eq(inject_unit_choose(&unit, NOW_NS).reason, FAULT_STRIKES);
	runtime.observe = true;
	cr_expect_eq(inject_unit_choose(&unit, NOW_NS).reason, FAULT_BY_MODE);
	cr_expect_eq(suppressed(0, FAULT_BY_MODE), 1);
}

Test(inject_unit, there_is_one_event_a_second_whatever_times_threads_come_with)
{
	struct inject_unit unit = begin("fault A = 127.0.0.1:PORT refuse\n");
	uint64_t before = events();

	for (int i = 0; i < 3; i++)
		cr_expect(inject_unit_strikes(&unit, 0, NOW_NS + (uint64_t)i));
	cr_expect_eq(events(), before + 1);
	cr_expect(inject_unit_strikes(&unit, 0, NOW_NS - 1));
	cr_expect_eq(events(), before + 1, "an older time is no second later");
	cr_expect(inject_unit_strikes(&unit, 0, NOW_NS + CLOCK_SECOND_NS));
	cr_expect_eq(events(), before + 2);
}

Test(inject_unit, nothing_is_late_under_a_filter)
{
	struct inject_unit unit = begin("fault A = 127.0.0.1:PORT latency=1s\n");

	cr_expect_eq(inject_unit_strikes_delay(&unit, 5, NOW_NS), 5);
	own_calls_forbid();
	cr_expect_eq(inject_unit_strikes_delay(&unit, 5, NOW_NS), 0);
	cr_expect_eq(injected(0), 1);
	cr_expect_eq(suppressed(0, FAULT_BY_MODE), 1);
}
