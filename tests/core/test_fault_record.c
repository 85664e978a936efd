/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/fault_record.h"

#define SECOND 1000000000ull
#define NOW (1000 * SECOND)

static struct fault_record record;

Test(fault_record, connections_have_numbers_from_one)
{
	cr_expect_eq(fault_record_connection(&record, NOW), 1);
	cr_expect_eq(fault_record_connection(&record, NOW), 2);
	cr_expect_eq(record.used_ns, NOW);
}

Test(fault_record, a_rule_strikes_so_often)
{
	struct fault fault = { .times = 3 };

	for (int i = 0; i < 5; i++)
		cr_expect_eq(fault_record_strike(&record, &fault, NOW), i < 3, "%d", i);
	cr_expect(record.injected == 3 && record.suppressed[FAULT_BY_TIMES] == 2);
	fault.times = 0;
	cr_expect(fault_record_strike(&record, &fault, NOW));
}

Test(fault_record, a_rule_strikes_once_in_so_long)
{
	struct fault fault = { .every_ns = 5 * SECOND };

	cr_expect(fault_record_strike(&record, &fault, NOW));
	cr_expect_not(fault_record_strike(&record, &fault, NOW + 5 * SECOND - 1));
	cr_expect(fault_record_strike(&record, &fault, NOW + 5 * SECOND));
	cr_expect_not(fault_record_strike(&record, &fault, NOW + 6 * SECOND));
	cr_expect_eq(record.suppressed[FAULT_BY_TIMES], 2);
	cr_expect_not(fault_record_strike(&record, &fault, NOW + 1), "a thread may come late");
	cr_expect_not(fault_record_strike(&record, &fault, NOW - 50 * SECOND));
	record.struck_ns = UINT64_MAX;
	cr_expect(fault_record_strike(&record, &fault, NOW), "a time to come is no time");
}

Test(fault_record, counts_what_happened)
{
	fault_record_seen(&record);
	fault_record_seen(&record);
	fault_record_matched(&record);
	fault_record_suppressed(&record, FAULT_BY_MODE);
	fault_record_suppressed(&record, FAULT_REASON_COUNT);
	cr_expect(record.seen == 2 && record.matched == 1 && record.injected == 0);
	cr_expect_eq(record.suppressed[FAULT_BY_MODE], 1);
	fault_record_unreported(&record);
	cr_expect_eq(record.unreported, 1);
	cr_assert(fault_record_clear(&record, record.key));
	cr_expect_eq(record.unreported, 0);
}

Test(fault_record, is_told_of_once_in_so_long_whoever_asks)
{
	cr_expect(fault_record_is_news(&record, NOW));
	cr_expect_not(fault_record_is_news(&record, NOW));
	cr_expect_not(fault_record_is_news(&record, NOW + FAULT_TOLD_NS - 1));
	cr_expect_not(fault_record_is_news(&record, NOW - 1), "a thread may come late");
	cr_expect(fault_record_is_news(&record, NOW + FAULT_TOLD_NS));
	record.told_ns = UINT64_MAX;
	cr_expect(fault_record_is_news(&record, NOW), "a time to come is no time");
}

Test(fault_record, is_forgotten_when_nobody_used_it_for_long)
{
	fault_record_connection(&record, NOW);
	cr_expect_not(fault_record_is_forgotten(&record, NOW + FAULT_FORGOTTEN_NS));
	cr_expect(fault_record_is_forgotten(&record, NOW + FAULT_FORGOTTEN_NS + 1));
	cr_expect(fault_record_is_forgotten(&record, NOW - FAULT_FORGOTTEN_NS - 1));
	fault_record_forget(&record);
	cr_expect(fault_record_is_forgotten(&record, NOW));
}

Test(fault_record, is_over_at_its_end_if_it_has_one)
{
	cr_expect_not(fault_record_is_over(&record, NOW));
	record.ends_ns = NOW + 1;
	cr_expect_not(fault_record_is_over(&record, NOW));
	cr_expect(fault_record_is_over(&record, NOW + 1));
}

Test(fault_record, begins_anew_without_what_it_counted)
{
	struct fault fault = { .every_ns = 5 * SECOND };

	strcpy(record.name, "A");
	fault_record_connection(&record, NOW);
	fault_record_strike(&record, &fault, NOW);
	fault_record_suppressed(&record, FAULT_BY_MODE);
	fault_record_begin_anew(&record, NOW + 1);
	cr_expect(record.connections == 0 && record.injected == 0 && record.struck_ns == 0);
	cr_expect_eq(record.suppressed[FAULT_BY_MODE], 0);
	cr_expect_eq(record.began_ns, NOW + 1);
	cr_expect_str_eq(record.name, "A");
}
