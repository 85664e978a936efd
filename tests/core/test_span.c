/* SPDX-License-Identifier: MIT */
#include "core/span.h"

#include <criterion/criterion.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool equals(struct span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

Test(span, is_and_begins_compare_its_own_length)
{
	struct span span = { "breaker", 5 };

	cr_expect(span_is(span, "break"));
	cr_expect_not(span_is(span, "breaker"));
	cr_expect_not(span_is(span, "brea"));
	cr_expect(span_begins(span, "bre"));
	cr_expect(span_begins(span, ""));
	cr_expect_not(span_begins(span, "breaker"));
	cr_expect(equals(span_from(span, 2), "eak"));
	cr_expect(equals(span_from(span, 5), ""));
}

Test(span, blanks_are_trimmed_at_both_ends)
{
	cr_expect(equals(span_trim(span_of(" \t a b \r")), "a b"));
	cr_expect(equals(span_trim(span_of(" \t\r")), ""));
	cr_expect(equals(span_trim(span_of("")), ""));
	cr_expect(equals(span_trim(span_of("a")), "a"));
}

Test(span, a_comment_begins_at_a_word)
{
	cr_expect(equals(span_without_comment(span_of("a # b")), "a "));
	cr_expect(equals(span_without_comment(span_of("# b")), ""));
	cr_expect(equals(span_without_comment(span_of("a#b")), "a#b"));
	cr_expect(equals(span_without_comment(span_of("a#b\t#c#d")), "a#b\t"));
}

Test(span, pieces_are_taken_up_to_the_separator)
{
	struct span rest = span_of("a,,bc");

	cr_expect(equals(span_take(&rest, ','), "a"));
	cr_expect(equals(span_take(&rest, ','), ""));
	cr_expect(equals(span_take(&rest, ','), "bc"));
	cr_expect(equals(rest, ""));
	cr_expect(equals(span_take(&rest, ','), ""));
	rest = (struct span){ NULL, 0 };
	cr_expect_eq(span_take(&rest, ',').length, 0);
}

Test(span, words_are_taken_up_to_a_blank_or_equals_sign)
{
	static const char *const cases[][3] = {
		{ "break PAY = x", "break", "PAY = x" }, { "PAY=x ", "PAY", "=x" },
		{ "= x", "", "= x" }, { "one", "one", "" }, { "", "", "" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct span rest = span_of(cases[i][0]);

		cr_expect(equals(span_take_word(&rest), cases[i][1]), "%s", cases[i][0]);
		cr_expect(equals(rest, cases[i][2]), "%s", cases[i][0]);
	}
}
