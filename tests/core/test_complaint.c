/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "core/complaint.h"
#include "core/fault_terms.h"
#include "core/possible.h"
#include "core/text.h"

static char text[256];
static const struct complaint complaint = {text, sizeof(text)};
static struct fault fault = {.target = {.text = "redis"}};

Test(complaint, is_false_and_text)
{
	cr_expect_not(complaint_say(&complaint, "%d of %s", 2, "three"));
	cr_expect_str_eq(text, "2 of three");
	cr_expect_not(complaint_first(&fault, &complaint));
	cr_expect_str_eq(text, "expected the target first, such as redis:6379, got 'redis'");
}

Test(complaint, the_nearest_name_is_told_but_never_the_one_that_nobody_writes)
{
	cr_expect_not(complaint_unknown(&fault, "tiems", &complaint));
	cr_expect(strstr(text, "got 'tiems', did you mean times?"), "%s", text);
	cr_expect_not(complaint_unknown(&fault, "P", &complaint));
	cr_expect_not(strstr(text, "P%"), "%s", text);
}

/* What is suggested must be good. */
Test(complaint, a_number_without_its_unit_is_told_with_one_that_can_be_read)
{
	static const char *const numbers[][3] = {
			{"P%", "20", "20%"},
			{"P%", "0", "0%"},
			{"P%", "120", NULL},
			{"for", "30", "30ms or 30s"},
			{"latency", "300", "300ms or 300s"},
			{"latency", "1s~5", NULL},
			{"latency", "12345678901234567890", NULL},
			{"reset", "64", "64B or 64KB"},
			{"rate", "64", "64B/s or 64KB/s"},
			{"times", "1s", NULL},
	};
	char expected[64];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct fault_term *term = fault_term_find(numbers[i][0]);

		cr_expect_not(complaint_expected(term, "one", numbers[i][1], &complaint));
		const char *end = strstr(text, "got");
		text_format(expected, sizeof(expected), "got '%s'%s%s%s", numbers[i][1],
				numbers[i][2] ? ", did you mean " : "",
				numbers[i][2] ? numbers[i][2] : "", numbers[i][2] ? "?" : "");
		cr_assert_not_null(end, "%s", text);
		cr_expect_str_eq(end, expected);
	}
}

Test(complaint, of_a_ratio_no_name_is_told_as_it_has_none)
{
	complaint_expected(fault_term_find("P%"), "one", "20", &complaint);
	cr_expect_str_eq(text, "expected one, got '20', did you mean 20%?");
	complaint_twice(fault_term_find("P%"), "20%", &complaint);
	cr_expect_str_eq(text, "expected one ratio, got '20%' as well");
	complaint_twice(fault_term_find("refuse"), NULL, &complaint);
	cr_expect_str_eq(text, "refuse: expected it once, got 'refuse' as well");
}

Test(complaint, an_error_that_cannot_be_is_told_with_those_that_can)
{
	struct fault of_error = {.error = EPIPE};

	cr_expect_not(complaint_impossible(&of_error, POSSIBLE_RECV, &complaint));
	cr_expect(strstr(text, "errno: expected an error of recv on a stream such as "), "%s",
			text);
	cr_expect(strstr(text, "got 'EPIPE'"), "%s", text);
}
