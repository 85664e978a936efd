/* SPDX-License-Identifier: MIT */
#include "core/format.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(format, writes_what_it_knows)
{
	char text[128];
	size_t length = text_format(text, sizeof(text), "%s %d %d %u %lu %llu %x %lx %c %%", "a",
			-5, INT32_MIN, 7u, 8ul, 18446744073709551615ull, 255u, 0xabcdef0123ul, 'c');

	cr_expect_str_eq(text, "a -5 -2147483648 7 8 18446744073709551615 ff abcdef0123 c %");
	cr_expect_eq(length, strlen(text));
}

Test(format, terminates_what_does_not_fit)
{
	char text[8];

	memset(text, 'x', sizeof(text));
	cr_expect_eq(text_format(text, 5, "%s", "much too long"), 4);
	cr_expect_str_eq(text, "much");
	cr_expect_eq(text[5], 'x');
	cr_expect_eq(text_format(text, 1, "%u", 12345u), 0);
	cr_expect_str_eq(text, "");
	cr_expect_eq(text_format(text, 0, "%u", 12345u), 0);
}

Test(format, copy_cuts_and_terminates)
{
	char text[4] = "xxx";

	cr_expect_eq(text_copy(text, sizeof(text), "abcdef"), 3);
	cr_expect_str_eq(text, "abc");
	cr_expect_eq(text_copy(text, sizeof(text), "ab"), 2);
	cr_expect_str_eq(text, "ab");
	cr_expect_eq(text_copy(text, 0, "zz"), 0);
	cr_expect_str_eq(text, "ab");
}

Test(format, a_quote_is_printable_whatever_it_quotes)
{
	static const struct {
		const char *text;
		size_t length;
		const char *quoted;
	} cases[] = {
		{ "plain", 5, "plain" }, { "", 0, "" }, { "\xff\n", 2, "\\xff\\x0a" },
		{ "a\0b", 3, "a\\x00b" }, { "back\\slash", 10, "back\\x5cslash" },
		{ "0123456789abcde", 15, "0123456789abcde" },
		{ "0123456789abcdef", 16, "0123456789ab..." },
		{ "012345678901\xff", 13, "012345678901..." },
		{ "01234567\xff\xff", 10, "01234567\\xff..." },
		{ "01234567890\xff", 12, "01234567890\\xff" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char quoted[16];

		text_quote(quoted, sizeof(quoted), cases[i].text, cases[i].length);
		cr_expect_str_eq(quoted, cases[i].quoted, "%zu: %s", i, quoted);
	}
}

Test(format, what_was_expected_is_said_with_what_was_meant)
{
	char text[64];

	cr_expect_eq(text_expected(text, sizeof(text), "peace", "wra", 3, "war"), 44);
	cr_expect_str_eq(text, "expected peace, got 'wra', did you mean war?");
	text_expected(text, sizeof(text), "peace", "w\nr", 3, NULL);
	cr_expect_str_eq(text, "expected peace, got 'w\\x0ar'");
	text_expected(text, 8, "peace", "", 0, NULL);
	cr_expect_str_eq(text, "expecte");
}

Test(format, a_share_is_written_as_it_may_be_read)
{
	static const struct {
		unsigned int ratio;
		const char *text;
	} cases[] = {
			{0, "0%"},
			{1000000, "100%"},
			{200000, "20%"},
			{500, "0.05%"},
			{333333, "1/3"},
			{666666, "2/3"},
			{142857, "1/7"},
			{1, "0.0001%"},
			{33333, "1/30"},
			{1001, "1/999"},
			{123456, "12.3456%"},
			{999999, "99.9999%"},
	};
	char text[16];

	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect_eq(text_share(text, sizeof(text), cases[i].ratio), strlen(text));
		cr_expect_str_eq(text, cases[i].text);
	}
	text_share(text, 4, 123456);
	cr_expect_str_eq(text, "12.");
}
