/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/injection.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char line[] = "{\"rule\": \"REDIS\", \"connection\": 3, \"call\": 1, \"fault\": "
			   "\"latency\", \"value\": 300000000}\n";

Test(injection, is_one_line)
{
	struct injection injection = { "REDIS", { 3, 1 }, FAULT_LATENCY, 300000000 };
	char text[INJECTION_LINE_SIZE];

	cr_expect_eq(injection_format(&injection, text), strlen(line));
	cr_expect_str_eq(text, line);
}

Test(injection, the_longest_line_fits)
{
	struct injection injection = {"", {UINT32_MAX, UINT32_MAX}, FAULT_UNREACHABLE, UINT64_MAX};
	struct injection again;
	char text[INJECTION_LINE_SIZE];

	memset(injection.rule, 'A', RULE_NAME_SIZE - 1);
	size_t length = injection_format(&injection, text);
	cr_expect_eq(text[length - 1], '\n');
	/* The largest number of all is what text_count() refuses. */
	injection.value--;
	length = injection_format(&injection, text);
	cr_assert_null(injection_parse(text, length - 1, &again));
	cr_expect_str_eq(again.rule, injection.rule);
	cr_expect_eq(again.value, injection.value);
}

Test(injection, is_read_again)
{
	static const char spaced[] = "  {\"rule\":\"A\" , \"connection\" :1,\"call\":2,\t\"fault\":"
				     "\"refuse\",\"value\":0 }\r";
	struct injection injection;

	cr_assert_null(injection_parse(line, strlen(line) - 1, &injection));
	cr_expect_str_eq(injection.rule, "REDIS");
	cr_expect(injection.unit.connection == 3 && injection.unit.call == 1);
	cr_expect_eq(injection.kind, FAULT_LATENCY);
	cr_expect_eq(injection.value, 300000000);
	cr_assert_null(injection_parse(spaced, strlen(spaced), &injection));
	cr_expect_str_eq(injection.rule, "A");
	cr_expect(injection.unit.call == 2 && injection.kind == FAULT_REFUSE);
}

#define LINE(rule, connection, fault, value)                                                       \
	"{\"rule\": \"" rule "\", \"connection\": " connection                                     \
	", \"call\": 1, \"fault\": \"" fault "\", \"value\": " value "}"

static const char *const wrong[][2] = {
		{"", "a line as a report has it"},
		{"{}", "a line as a report has it"},
		{LINE("a.b", "1", "refuse", "0"), "the name of a rule"},
		{LINE("", "1", "refuse", "0"), "the name of a rule"},
		{LINE("A", "1", "elephant", "0"), "the name of a fault"},
		{LINE("A", "1", "none", "0"), "the name of a fault"},
		{LINE("A", "-1", "refuse", "0"), "a line as a report has it"},
		{LINE("A", "0", "refuse", "0"), "numbers of connections and calls from 1"},
		{"{\"rule\": \"A\", \"connection\": 1, \"call\": 0, \"fault\": \"refuse\", "
		 "\"value\": 0}", "numbers of connections and calls from 1"},
		{LINE("A", "4294967296", "refuse", "0"), "a line as a report has it"},
		{LINE("A", "1", "refuse", ""), "a line as a report has it"},
		{LINE("A", "1", "refuse", "99999999999999999999999999"),
				"a line as a report has it"},
		{LINE("A", "1", "refuse", "0") "}", "a line as a report has it"},
		{LINE("A", "1", "refuse", "0") LINE("A", "1", "refuse", "0"),
				"a line as a report has it"},
};

Test(injection, anything_else_is_refused_and_changes_nothing)
{
	struct injection injection = { "X", { 5, 5 }, FAULT_DUP, 5 };
	struct injection before = injection;

	for (size_t i = 0; i < COUNT(wrong); i++) {
		const char *expected =
				injection_parse(wrong[i][0], strlen(wrong[i][0]), &injection);

		cr_assert_not_null(expected, "%s", wrong[i][0]);
		cr_expect_str_eq(expected, wrong[i][1], "%s", wrong[i][0]);
	}
	cr_expect_arr_eq(&injection, &before, sizeof(before));
}

Test(injection, every_beginning_of_a_line_is_refused)
{
	struct injection injection;

	for (size_t length = 0; length < strlen(line) - 1; length++)
		cr_expect_not_null(injection_parse(line, length, &injection), "%zu", length);
}

Test(injection, a_report_in_any_order_is_searched)
{
	static struct injection report[200];

	for (uint32_t i = 0; i < 200; i++) {
		uint32_t at = i * 77 % 200;

		report[at] = (struct injection){ "", { i / 2 % 10, i / 20 }, FAULT_REFUSE, i };
		strcpy(report[at].rule, i % 2 ? "A" : "B");
	}
	injection_sort(report, 200);
	for (uint32_t i = 0; i < 200; i++) {
		const struct injection *found = injection_find(report, 200, i % 2 ? "A" : "B",
				(struct fault_unit){ i / 2 % 10, i / 20 });

		cr_assert_not_null(found, "%u", i);
		cr_expect_eq(found->value, i);
	}
	cr_expect_null(injection_find(report, 200, "C", (struct fault_unit){ 1, 1 }));
	cr_expect_null(injection_find(report, 200, "A", (struct fault_unit){ 10, 1 }));
	cr_expect_null(injection_find(report, 200, "A", (struct fault_unit){ 1, 10 }));
	cr_expect_null(injection_find(report, 0, "A", (struct fault_unit){ 1, 1 }));
}
