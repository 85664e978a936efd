/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/fault_table.h"
#include "core/fault_text.h"

#define SECOND 1000000000ull
#define NOW (1000 * SECOND)

static struct fault_table table;

static struct fault fault_of(const char *name, const char *text)
{
	struct fault fault;
	char error[256];

	cr_assert(fault_parse(name, text, strlen(text), &fault, error, sizeof(error)), "%s", error);
	return fault;
}

static struct fault_record *claim(const char *name, const char *text, uint64_t run, uint64_t now_ns)
{
	struct fault fault = fault_of(name, text);

	return fault_table_claim(&table, &fault, text, run, now_ns);
}

static bool add(const char *name, const char *text, uint64_t ends_ns, uint64_t now_ns)
{
	struct fault fault = fault_of(name, text);

	return fault_table_add(&table, &fault, text, ends_ns, now_ns);
}

/* The view of the added rule of that name, over or not; the last one. */
static bool added(const char *name, uint64_t now_ns, struct fault_view *ret)
{
	struct fault_view view;
	bool is_there = false;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (fault_table_read(&table, i, now_ns, &view) && view.is_added && !view.is_over &&
				strcmp(view.name, name) == 0) {
			cr_expect_not(is_there, "one at most");
			is_there = true;
			*ret = view;
		}
	}
	return is_there;
}

Test(fault_table, a_rule_has_one_record)
{
	struct fault_record *record = claim("A", "redis refuse", 0, NOW);
	struct fault_view view;

	cr_assert_not_null(record);
	cr_expect_eq(claim("A", "redis refuse", 0, NOW), record);
	cr_expect_neq(claim("B", "redis refuse", 0, NOW), record);
	cr_expect_neq(claim("A", "redis reset", 0, NOW), record);
	cr_expect_neq(claim("A", "redis refuse", 1, NOW), record);
	cr_assert(fault_table_read(&table, (uint32_t)(record - table.records), NOW, &view));
	cr_expect_str_eq(view.name, "A");
	cr_expect_str_eq(view.text, "redis refuse");
	cr_expect_eq(view.began_ns, NOW);
	cr_expect_not(view.is_added || view.is_over);
	cr_expect_eq(fault_table_at(&table, (uint32_t)(record - table.records), view.key), record);
	cr_expect_null(fault_table_at(&table, (uint32_t)(record - table.records), view.key + 1));
	cr_expect_null(fault_table_at(&table, FAULT_TABLE_SIZE, view.key));
	cr_expect_null(fault_table_at(&table, 9, 0));
	cr_expect_not(fault_table_read(&table, 9, NOW, &view));
	cr_expect_not(fault_table_read(&table, FAULT_TABLE_SIZE, NOW, &view));
}

Test(fault_table, connections_count_on_over_processes)
{
	cr_expect_eq(fault_record_connection(claim("A", "redis refuse", 0, NOW), NOW), 1);
	cr_expect_eq(fault_record_connection(claim("A", "redis refuse", 0, NOW), NOW), 2);
	cr_expect_eq(fault_record_connection(claim("A", "redis refuse", 7, NOW), NOW), 1);
	cr_expect_eq(fault_record_connection(claim("A", "redis refuse", 0, NOW), NOW), 3);
}

Test(fault_table, a_forgotten_rule_begins_anew)
{
	struct fault_record *record = claim("A", "redis refuse", 0, NOW);
	uint64_t later = NOW + FAULT_FORGOTTEN_NS;

	fault_record_connection(record, NOW);
	fault_record_matched(record);
	fault_record_suppressed(record, FAULT_BY_CHANCE);
	cr_expect_eq(claim("A", "redis refuse", 0, later), record);
	cr_expect(record->connections == 1 && record->began_ns == NOW, "just not forgotten");
	later += FAULT_FORGOTTEN_NS + 1;
	cr_expect_eq(claim("A", "redis refuse", 0, later), record);
	cr_expect(record->connections == 0 && record->began_ns == later);
	cr_expect(record->matched == 0 && record->suppressed[FAULT_BY_CHANCE] == 0);
}

Test(fault_table, a_run_forgets_nothing)
{
	struct fault_record *record = claim("A", "redis refuse", 5, NOW);

	fault_record_connection(record, NOW);
	cr_expect_eq(claim("A", "redis refuse", 5, 3 * NOW), record);
	cr_expect(record->connections == 1 && record->began_ns == NOW);
}

Test(fault_table, when_it_is_full_forgotten_rules_and_those_that_are_over_yield)
{
	char name[16];

	cr_assert(add("ADDED", "redis refuse", NOW + 5 * SECOND, NOW));
	for (int i = 1; i < FAULT_TABLE_SIZE; i++) {
		snprintf(name, sizeof(name), "R%d", i);
		cr_assert_not_null(claim(name, "redis refuse", 0, NOW + (uint64_t)i));
	}
	cr_expect_null(claim("NEW", "redis refuse", 0, NOW));
	cr_expect_not(add("NEW", "redis refuse", NOW + SECOND, NOW));
	cr_expect_eq(claim("NEW", "redis refuse", 0, NOW + 5 * SECOND), &table.records[0]);
	struct fault_record *record = claim("NEWER", "redis refuse", 0,
			NOW + FAULT_FORGOTTEN_NS + 2);
	cr_expect_eq(record, &table.records[1]);
	cr_expect_str_eq(record->name, "NEWER");
	cr_expect_eq(record->connections, 0);
}

/* What it did is what somebody wants to read now. */
Test(fault_table, what_has_just_ended_yields_after_what_was_forgotten)
{
	struct fault_record *forgotten = NULL;
	struct fault_view view;

	cr_assert(add("ADDED", "redis refuse", NOW + 5 * SECOND, NOW));
	fault_record_seen(&table.records[0]);
	for (uint64_t run = 1; run < FAULT_TABLE_SIZE; run++)
		forgotten = claim("R", "redis refuse", run, NOW + 9 * SECOND);
	fault_record_forget(forgotten);
	cr_expect_eq(claim("NEW", "redis refuse", 7, NOW + 6 * SECOND), forgotten);
	cr_assert(fault_table_read(&table, 0, NOW + 6 * SECOND, &view));
	cr_expect_str_eq(view.name, "ADDED");
	cr_expect(view.is_over && view.counts.seen == 1);
	cr_expect_eq(claim("NEWER", "redis refuse", 7, NOW + 6 * SECOND), &table.records[0]);
}

Test(fault_table, what_ended_long_ago_is_as_good_as_forgotten)
{
	cr_assert(add("ADDED", "redis refuse", NOW + 5 * SECOND, NOW));
	for (uint64_t run = 1; run < FAULT_TABLE_SIZE; run++)
		cr_assert_not_null(claim("R", "redis refuse", run, NOW));
	uint64_t later_ns = NOW + 5 * SECOND + FAULT_FORGOTTEN_NS;
	cr_expect_neq(claim("NEW", "redis refuse", 7, later_ns), &table.records[0]);
	cr_expect_eq(claim("NEWER", "redis refuse", 7, later_ns + 1), &table.records[0]);
}

Test(fault_table, when_it_is_full_the_rule_that_was_unused_longest_yields)
{
	struct fault_record *records[FAULT_TABLE_SIZE];
	uint64_t key;

	cr_assert(add("ADDED", "redis refuse", NOW + 100 * SECOND, NOW));
	for (uint64_t run = 1; run < FAULT_TABLE_SIZE; run++)
		records[run] = claim("R", "redis refuse", run, NOW + run);
	fault_record_connection(records[1], NOW + 50);
	key = records[2]->key;
	cr_expect_eq(claim("NEW", "redis refuse", 0, NOW + 60), records[2]);
	cr_expect_null(fault_table_at(&table, (uint32_t)(records[2] - table.records), key));
	cr_expect(add("BY_HAND", "redis refuse", NOW + 100 * SECOND, NOW + 61));
	cr_expect_str_eq(records[3]->name, "BY_HAND");
	cr_expect_eq(claim("R", "redis refuse", 1, NOW + 62), records[1]);
	cr_expect_eq(records[1]->connections, 1);
}

Test(fault_table, rules_of_one_process_take_nothing_from_each_other)
{
	struct fault_record *records[FAULT_TABLE_SIZE];
	char name[16];

	for (uint64_t now_ns = NOW; now_ns < NOW + 3 * SECOND; now_ns += SECOND) {
		for (int i = 0; i < FAULT_TABLE_SIZE; i++) {
			struct fault_record *record;

			snprintf(name, sizeof(name), "R%d", i);
			record = claim(name, "redis refuse", 7, now_ns);
			cr_expect(now_ns == NOW || record == records[i]);
			records[i] = record;
		}
		cr_expect_null(claim("ONE_MORE", "redis refuse", 7, now_ns));
	}
}

Test(fault_table, the_record_of_a_run_that_is_over_can_be_read_until_it_is_needed)
{
	struct fault_record *over = NULL;
	struct fault_view view;

	for (uint64_t run = 1; run <= FAULT_TABLE_SIZE; run++) {
		over = claim("A", "redis refuse", run, NOW);
		cr_assert_not_null(over);
	}
	fault_record_seen(over);
	cr_expect_null(claim("B", "redis refuse", 99, NOW));
	fault_record_forget(over);
	cr_assert(fault_table_read(&table, (uint32_t)(over - table.records), NOW, &view));
	cr_expect_eq(view.counts.seen, 1);
	cr_expect_eq(claim("B", "redis refuse", 99, NOW), over);
	cr_expect_eq(over->seen, 0);
	cr_expect_null(claim("C", "redis refuse", 99, NOW));
}

Test(fault_table, a_long_text_is_shortened_or_not_added)
{
	char text[400] = "redis refuse proc=";
	struct fault fault = fault_of("A", "redis refuse");
	struct fault_view view;

	memset(text + strlen(text), 'a', 300);
	cr_assert_not_null(fault_table_claim(&table, &fault, text, 0, NOW));
	cr_assert(fault_table_read(&table, 0, NOW, &view));
	cr_expect_eq(strlen(view.text), FAULT_TEXT_SIZE - 1);
	cr_expect_not(fault_table_add(&table, &fault, text, NOW + SECOND, NOW));
	text[FAULT_TEXT_SIZE] = '\0';
	cr_expect_not(fault_table_add(&table, &fault, text, NOW + SECOND, NOW));
	text[FAULT_TEXT_SIZE - 1] = '\0';
	cr_expect(fault_table_add(&table, &fault, text, NOW + SECOND, NOW));
}

Test(fault_table, what_is_added_by_hand_ends_by_itself)
{
	struct fault_view view;
	uint64_t generation = table.generation;

	cr_assert(add("A", "redis hang", NOW + SECOND, NOW));
	cr_expect_neq(table.generation, generation);
	cr_assert(added("A", NOW, &view));
	cr_expect(view.ends_ns == NOW + SECOND && view.began_ns == NOW);
	cr_expect_str_eq(view.text, "redis hang");
	cr_expect(added("A", NOW + SECOND - 1, &view));
	cr_expect_not(added("A", NOW + SECOND, &view));
	cr_expect_not(fault_record_is_over(&table.records[0], NOW + SECOND - 1));
	cr_expect(fault_record_is_over(&table.records[0], NOW + SECOND));
	cr_expect_not(fault_record_is_over(claim("A", "redis hang", 0, NOW), 9 * NOW),
			"the environment's do not");
}

Test(fault_table, what_is_added_again_takes_the_place_of_the_first)
{
	struct fault_view view;

	cr_assert(add("A", "redis hang", NOW + SECOND, NOW));
	cr_assert(add("B", "redis hang", NOW + SECOND, NOW));
	cr_assert(add("A", "redis refuse", NOW + 2 * SECOND, NOW));
	cr_assert(added("A", NOW, &view));
	cr_expect_str_eq(view.text, "redis refuse");
	cr_expect(added("B", NOW, &view));
}

Test(fault_table, of_two_that_are_added_at_once_the_later_stays)
{
	struct fault_view view;

	cr_assert(add("A", "redis hang", NOW + 9 * SECOND, NOW + 1));
	cr_assert(add("A", "redis refuse", NOW + 9 * SECOND, NOW));
	cr_assert(fault_table_read(&table, 0, NOW + 1, &view));
	cr_expect_not(view.is_over);
}

Test(fault_table, the_same_added_again_begins_anew)
{
	struct fault_view view;
	uint64_t generation;

	cr_assert(add("A", "redis hang", NOW + SECOND, NOW));
	fault_record_connection(&table.records[0], NOW);
	generation = table.generation;
	cr_assert(add("A", "redis hang", NOW + 3 * SECOND, NOW + 2 * SECOND));
	cr_expect_neq(table.generation, generation);
	cr_assert(added("A", NOW + 2 * SECOND, &view));
	cr_expect(view.began_ns == NOW + 2 * SECOND && view.connections == 0);
	cr_expect_eq(view.ends_ns, NOW + 3 * SECOND);
}

Test(fault_table, what_is_added_is_cleared_by_name_or_altogether)
{
	struct fault_view view;

	claim("A", "redis hang", 0, NOW);
	cr_assert(add("A", "redis hang", NOW + SECOND, NOW));
	cr_assert(add("B", "redis hang", NOW + SECOND, NOW));
	cr_assert(add("C", "redis hang", NOW + SECOND, NOW));
	cr_assert(add("OVER", "redis hang", NOW + 1, NOW));
	uint64_t generation = table.generation;
	cr_expect_eq(fault_table_clear(&table, "A", NOW + 2), 1);
	cr_expect_neq(table.generation, generation);
	cr_expect_not(added("A", NOW + 2, &view));
	cr_expect(added("B", NOW + 2, &view));
	cr_expect_eq(fault_table_clear(&table, "A", NOW + 2), 0);
	cr_expect_eq(fault_table_clear(&table, NULL, NOW + 2), 2);
	cr_expect_not(added("B", NOW + 2, &view));
	cr_expect_eq(fault_record_connection(claim("A", "redis hang", 0, NOW), NOW), 1);
}

/* Who died in the middle of a claim leaves it to the next of that rule, and to all after a while.
 */
Test(fault_table, a_claim_that_was_left_behind_is_completed)
{
	struct fault_record *record = claim("A", "redis refuse", 0, NOW);

	record->key ^= 3ull << 62; /* live to claiming */
	cr_expect_eq(claim("A", "redis refuse", 0, NOW), record);
	record->key ^= 3ull << 62;
	for (int i = 1; i < FAULT_TABLE_SIZE; i++)
		cr_assert_not_null(claim("R", "redis refuse", (uint64_t)i, 3 * NOW));
	cr_expect_eq(claim("NEW", "redis refuse", 0, 3 * NOW), record);
}

Test(fault_table, garbage_neither_crashes_nor_hangs)
{
	uint64_t state = 1, *words = (uint64_t *)&table;
	struct fault fault = fault_of("A", "redis refuse times=5 every=1s");
	struct fault_view view;

	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < sizeof(table) / 8; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			words[i] = state;
		}
		struct fault_record *record = fault_table_claim(&table, &fault, "x", 0, NOW);
		fault_table_add(&table, &fault, "x", NOW + 1, NOW);
		for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
			if (!fault_table_read(&table, i, NOW, &view))
				continue;
			cr_expect_lt(strnlen(view.name, sizeof(view.name)), sizeof(view.name));
			cr_expect_lt(strnlen(view.text, sizeof(view.text)), sizeof(view.text));
		}
		fault_table_clear(&table, NULL, NOW);
		if (record) {
			fault_record_connection(record, NOW);
			fault_record_strike(record, &fault, NOW);
		}
	}
}
