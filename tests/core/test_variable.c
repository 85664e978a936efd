/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/variable.h"

static const char *const words[] = { "none", "some", NULL };

static struct record {
	unsigned int word;
	bool is_on;
	uint64_t number, ns;
	char path[VARIABLE_PATH_SIZE];
} record;

#define FIELD(name) offsetof(struct record, name)

static const struct variable rows[] = {
	{ "OUR_WORD", variable_word, FIELD(word), words, "none or some" },
	{ "OUR_SWITCH", variable_switch, FIELD(is_on), words, "none or some" },
	{ "OUR_NUMBER", variable_number, FIELD(number), NULL, NULL },
	{ "OUR_TIME", variable_duration, FIELD(ns), NULL, "more than nothing" },
	{ "OUR_PATH", variable_path, FIELD(path), NULL, "a path" },
};

static const char *read(int row, const char *value)
{
	return rows[row].read(&rows[row], &record, value);
}

Test(variable, each_reads_its_field)
{
	cr_expect_null(read(0, "some"));
	cr_expect_null(read(1, "some"));
	cr_expect_null(read(2, "77"));
	cr_expect_null(read(3, "2us"));
	cr_expect_null(read(4, "/etc"));
	cr_expect(record.word == 1 && record.is_on && record.number == 77 && record.ns == 2000);
	cr_expect_str_eq(record.path, "/etc");
}

Test(variable, what_was_expected_is_said_and_nothing_changed)
{
	struct record before = record;
	char path[300];

	memset(path, '/', sizeof(path));
	path[256] = '\0';
	cr_expect_str_eq(read(0, "other"), "none or some");
	cr_expect_str_eq(read(1, "other"), "none or some");
	cr_expect_str_eq(read(2, "x"), "a whole number");
	cr_expect_str_eq(read(3, "5"), "a duration such as 250ms, 5s or 1m");
	cr_expect_str_eq(read(3, "0s"), "more than nothing");
	cr_expect_str_eq(read(4, "etc"), "a path");
	cr_expect_str_eq(read(4, path), "a path");
	cr_expect_arr_eq(&record, &before, sizeof(record));
	path[255] = '\0';
	cr_expect_null(read(4, path));
}

Test(variable, the_first_value_counts_and_an_empty_one_is_none)
{
	char *environment[] = { "A_=0", "A=1", "A=2", "B=", "C", NULL };

	cr_expect_str_eq(variable_value(environment, "A"), "1");
	cr_expect_null(variable_value(environment, "B"));
	cr_expect_null(variable_value(environment, "C"));
	cr_expect_null(variable_value(NULL, "A"));
}

Test(variable, is_found_by_its_whole_name)
{
	cr_expect_eq(variable_find(rows, 5, span_of("OUR_TIME")), &rows[3]);
	cr_expect_null(variable_find(rows, 5, span_of("OUR_TIM")));
	cr_expect_null(variable_find(rows, 5, span_of("OUR_TIMES")));
}

Test(variable, the_nearest_name_is_meant)
{
	static const char *const names[][2] = {
		{ "OUR_NUMBR", "no such variable, did you mean OUR_NUMBER?" },
		{ "OUR_WROD_OF_MANY_OTHER_WORDS", "no such variable, did you mean OUR_WORD?" },
		{ "OUR_ELEPHANTS", "no such variable" },
		{ "OUR_", "no such variable" },
		{ "", "no such variable" },
	};
	char error[96];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		variable_unknown(rows, 5, span_of(names[i][0]), 4, error, sizeof(error));
		cr_expect_str_eq(error, names[i][1], "%s", names[i][0]);
	}
}

Test(variable, a_bad_value_is_said_and_an_empty_one_is_none)
{
	char error[96] = "";

	cr_expect(variable_read(&rows[0], &record, "some", error, sizeof(error)));
	cr_expect(variable_read(&rows[0], &record, "", error, sizeof(error)));
	cr_expect_eq(record.word, 1);
	cr_expect_not(variable_read(&rows[0], &record, "som", error, sizeof(error)));
	cr_expect_str_eq(error, "expected none or some, got 'som', did you mean some?");
	cr_expect_not(variable_read(&rows[4], &record, "som", error, sizeof(error)));
	cr_expect_str_eq(error, "expected a path, got 'som'");
}
