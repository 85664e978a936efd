/* SPDX-License-Identifier: MIT */
#include "core/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char duration_form[] = "a duration such as 250ms, 5s or 1m";
static const char ratio_form[] = "a ratio such as 50% or 1/20";
static const char too_large[] = "a smaller number";

Test(text, a_duration_is_a_number_and_a_unit)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "1ns", 1 }, { "3us", 3000 }, { "250ms", 250000000 }, { "5s", 5000000000 },
		{ "1m", 60000000000 }, { "1.5h", 5400000000000 }, { "0s", 0 }, { "0.5ms", 500000 },
		{ "007s", 7000000000 }, { "0.1ns", 0 }, { "1.0000000001s", 1000000000 },
		{ "18446744073709551614ns", UINT64_MAX - 1 },
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t ns = 77;

		cr_expect_null(text_duration(good[i].text, &ns), "%s", good[i].text);
		cr_expect_eq(ns, good[i].ns, "%s: %lu", good[i].text, ns);
	}
}

Test(text, a_duration_of_another_form_is_refused_and_says_the_form)
{
	static const char *const bad[] = {"", "5", "0.5", "100", "s", "ms", "-5s", "+5s", "5 s",
			" 5s", "5s ", "5S", "5sec", "5mss", ".5s", "5.s", "1e3s", "1,5s", "0x5s",
			"5s5s", "5\xc2\xb5s", "five", "inf", "nan"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t ns = 77;
		const char *expected = text_duration(bad[i], &ns);

		cr_assert_not_null(expected, "%s", bad[i]);
		cr_expect_str_eq(expected, duration_form);
		cr_expect_eq(ns, 77, "untouched after '%s'", bad[i]);
	}
}

Test(text, numbers_that_do_not_fit_are_refused_not_wrapped)
{
	uint64_t value = 77;
	uint32_t ratio = 77;

	cr_expect_str_eq(text_duration("99999999999999999999999999s", &value), too_large);
	cr_expect_str_eq(text_duration("18446744074s", &value), too_large);
	cr_expect_str_eq(text_duration("18446744073709551616ns", &value), too_large);
	cr_expect_str_eq(text_count("18446744073709551616", &value), too_large);
	cr_expect_str_eq(text_thousandths("18446744073709551", &value) ?: "", "");
	cr_expect_str_eq(text_thousandths("18446744073709552", &value), too_large);
	cr_expect_str_eq(text_ratio("99999999999999999999%", &ratio),
			"0%, or a ratio from 0.0001% to 100%");
	cr_expect_str_eq(text_ratio("99999999999999999999/99999999999999999998", &ratio) ?: "",
			"0%, or a ratio from 0.0001% to 100%");
	cr_expect_eq(ratio, 77);
}

Test(text, a_ratio_is_a_percentage_or_a_fraction)
{
	static const struct {
		const char *text;
		uint32_t ratio;
	} good[] = {
			{"50%", 500000},
			{"0.5%", 5000},
			{"0%", 0},
			{"100%", 1000000},
			{"1/20", 50000},
			{"1/1", 1000000},
			{"0/5", 0},
			{"12.5%", 125000},
			{"0.0001%", 1},
			{"100.0%", 1000000},
	};

	for (size_t i = 0; i < COUNT(good); i++) {
		uint32_t ratio = 77;

		cr_expect_null(text_ratio(good[i].text, &ratio), "%s", good[i].text);
		cr_expect_eq(ratio, good[i].ratio, "%s: %u", good[i].text, ratio);
	}
}

Test(text, a_ratio_is_rounded_so_that_exactly_this_share_reaches_it)
{
	uint32_t ratio;

	cr_assert_null(text_ratio("1/3", &ratio));
	cr_expect(1 * 1000000ull >= ratio * 3ull);
	cr_assert_null(text_ratio("2/3", &ratio));
	cr_expect(2 * 1000000ull >= ratio * 3ull);
	cr_assert_null(text_ratio("33.3333333%", &ratio));
	cr_expect(1 * 1000000ull >= ratio * 3ull);
}

Test(text, a_share_below_one_in_a_million_is_refused_not_rounded)
{
	static const char *const bad[] = {"0.000001%", "0.00000000000001%", "0.00009%",
			"1/999999999", "1/1000001"};
	static const char *const nothing[] = {"0.0%", "0.00000000000000%", "0/1000000000"};
	uint32_t ratio = 77;

	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_str_eq(text_ratio(bad[i], &ratio) ?: bad[i],
				"0%, or a ratio from 0.0001% to 100%");
	cr_expect_eq(ratio, 77);
	for (size_t i = 0; i < COUNT(nothing); i++) {
		ratio = 77;
		cr_expect_null(text_ratio(nothing[i], &ratio), "%s", nothing[i]);
		cr_expect_eq(ratio, 0, "%s", nothing[i]);
	}
}

Test(text, a_ratio_of_another_form_is_refused_and_says_the_form)
{
	static const char *const bad[] = {"", "50", "0.5", "%", "50 %", "50%%", "-1%", "/2", "1/",
			"1/2/3", "1/2%", "half", "1.5/2", "50%x"};
	uint32_t ratio = 77;

	for (size_t i = 0; i < COUNT(bad); i++) {
		const char *expected = text_ratio(bad[i], &ratio);

		cr_assert_not_null(expected, "%s", bad[i]);
		cr_expect_str_eq(expected, ratio_form);
	}
	cr_expect_str_eq(text_ratio("101%", &ratio), "0%, or a ratio from 0.0001% to 100%");
	cr_expect_str_eq(text_ratio("100.01%", &ratio), "0%, or a ratio from 0.0001% to 100%");
	cr_expect_str_eq(text_ratio("3/2", &ratio), "0%, or a ratio from 0.0001% to 100%");
	cr_expect_str_eq(text_ratio("1/0", &ratio), "0%, or a ratio from 0.0001% to 100%");
	cr_expect_eq(ratio, 77);
}

Test(text, a_count_is_digits_and_nothing_else)
{
	static const char *const bad[] = {
			"", "-1", "+1", "1.5", "0x10", "1e3", " 1", "1 ", "ten", "5%"};
	uint64_t value = 77;

	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_str_eq(text_count(bad[i], &value) ?: "", "a whole number", "%s", bad[i]);
	cr_expect_eq(value, 77);
	cr_expect_null(text_count("0", &value));
	cr_expect_eq(value, 0);
	cr_expect_null(text_count("18446744073709551614", &value));
	cr_expect_eq(value, UINT64_MAX - 1);
}

Test(text, ports_are_one_or_a_range)
{
	static const char *const bad[] = {"", "0", "65536", "-1", "1-", "-", "80-70", "0-5",
			"80-65536", "http", "80 ", "80-90-100", "4294967377", "1.5"};
	uint16_t low = 7, high = 7;

	for (size_t i = 0; i < COUNT(bad); i++) {
		cr_expect_str_eq(text_ports(bad[i], &low, &high) ?: "",
				"a port from 1 to 65535, or a range such as 8000-8999", "%s",
				bad[i]);
	}
	cr_expect(low == 7 && high == 7);
	cr_expect_null(text_ports("443", &low, &high));
	cr_expect(low == 443 && high == 443);
	cr_expect_null(text_ports("1-65535", &low, &high));
	cr_expect(low == 1 && high == 65535);
}

Test(text, thousandths_take_decimals)
{
	uint64_t value = 77;

	cr_expect_null(text_thousandths("2", &value));
	cr_expect_eq(value, 2000);
	cr_expect_null(text_thousandths("1.5", &value));
	cr_expect_eq(value, 1500);
	cr_expect_null(text_thousandths("0.0019", &value));
	cr_expect_eq(value, 1);
	cr_expect_str_eq(text_thousandths("2x", &value), "a number such as 2 or 1.5");
	cr_expect_str_eq(text_thousandths(".5", &value), "a number such as 2 or 1.5");
}

static const char *const words[] = { "errors", "volume", "window", "sleep", "slow", "slow-rate",
	"half-open", "consecutive", "a-word-that-is-much-too-long-to-be-misspelt" };

Test(text, the_nearest_word_is_found_over_a_slip_of_the_hand)
{
	static const struct {
		const char *word;
		const char *nearest;
	} cases[] = {
			{"sleeep", "sleep"},
			{"slep", "sleep"},
			{"slepe", "sleep"},
			{"SLEEP", "sleep"},
			{"half_open", "half-open"},
			{"halfopen", "half-open"},
			{"error", "errors"},
			{"errros", "errors"},
			{"consequtive", "consecutive"},
			{"volum", "volume"},
			{"slo", "slow"},
			{"slowrate", "slow-rate"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *nearest = text_nearest(cases[i].word, words, COUNT(words));

		cr_assert_not_null(nearest, "%s", cases[i].word);
		cr_expect_str_eq(nearest, cases[i].nearest, "%s: %s", cases[i].word, nearest);
	}
}

Test(text, a_word_near_nothing_has_no_nearest)
{
	static const char *const far[] = { "", "x", "timeout", "elephants", "zz", "1234567",
		"a-word-that-is-much-too-long-to-be-misspelt" };

	for (size_t i = 0; i < COUNT(far); i++)
		cr_expect_null(text_nearest(far[i], words, COUNT(words)), "%s", far[i]);
	cr_expect_null(text_nearest("sleep", NULL, 0));
}

Test(text, a_word_is_looked_up_up_to_the_end_of_the_list)
{
	static const char *const list[] = { "any", "rate", NULL };

	cr_expect_eq(text_word_index(list, "any"), 0);
	cr_expect_eq(text_word_index(list, "rate"), 1);
	cr_expect_eq(text_word_index(list, "rat"), -1);
	cr_expect_eq(text_word_index(list, ""), -1);
}

Test(text, a_glob_matches_the_whole_text)
{
	static const struct {
		const char *glob;
		const char *text;
		bool matches;
	} cases[] = {
			{"*", "", true},
			{"*", "anything", true},
			{"?", "", false},
			{"?", "a", true},
			{"web-?", "web-1", true},
			{"web-?", "web-12", false},
			{"web-*", "web-", true},
			{"*.test", "a.test", true},
			{"*.test", "a.tests", false},
			{"a*b*c", "a1b2b3c", true},
			{"a*b*c", "a1b2b3", false},
			{"**a**", "ba", true},
			{"", "", true},
			{"", "a", false},
			{"abc", "abcd", false},
			{"abcd", "abc", false},
			{"a*", "b", false},
			{"*ab", "aab", true},
			{"*?b", "b", false},
			{"a[bc]", "ab", false},
			{"*", "a*b", true},
			{"a*b", "a*b", true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect_eq(text_glob(cases[i].glob, cases[i].text), cases[i].matches, "%s on %s",
				cases[i].glob, cases[i].text);
	}
}

Test(text, one_of_several_globs_is_enough)
{
	cr_expect(text_glob_any("curl", "curl"));
	cr_expect(text_glob_any("wget, c?rl ,x", "curl"));
	cr_expect(text_glob_any(",,curl,", "curl"));
	cr_expect_not(text_glob_any("wget,url,cur", "curl"));
	cr_expect_not(text_glob_any("", "curl"));
	cr_expect_not(text_glob_any(",", ""));
}

/* Would not end in a lifetime if every star were tried at every place. */
Test(text, a_hostile_glob_ends)
{
	char glob[256], text[256];

	for (size_t i = 0; i < 254; i += 2)
		memcpy(glob + i, "*a", 2);
	memcpy(glob + 254, "b", 2);
	memset(text, 'a', 255);
	text[255] = '\0';
	cr_expect_not(text_glob(glob, text));
}

/* Part of the shared segment: a change needs a new SEGMENT_VERSION. */
Test(text, the_hash_is_fnv_1a_and_continues)
{
	cr_expect_eq(text_hash(0, "", 0), 0xcbf29ce484222325u);
	cr_expect_eq(text_hash(0, "a", 1), 0xaf63dc4c8601ec8cu);
	cr_expect_eq(text_hash(0, "foobar", 6), 0x85944171f73967e8u);
	cr_expect_eq(text_hash(text_hash(0, "foo", 3), "bar", 3), 0x85944171f73967e8u);
}

Test(text, a_size_has_a_unit_of_bytes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
			{"0B", 0},
			{"512B", 512},
			{"64KB", 64000},
			{"64KiB", 65536},
			{"2MB", 2000000},
			{"1MiB", 1048576},
			{"1GB", 1000000000},
			{"1.5GiB", 1610612736},
			{"1.5KiB", 1536},
			{"0.5B", 0},
	};
	static const char *const bad[] = { "", "64", "KB", "64K", "64kb", "64 KB", "64KB/s", "1TB",
		"-1B", "512kbit" };
	uint64_t bytes;

	for (size_t i = 0; i < COUNT(good); i++) {
		cr_expect_null(text_size(good[i].text, &bytes), "%s", good[i].text);
		cr_expect_eq(bytes, good[i].bytes, "%s: %lu", good[i].text, bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_str_eq(text_size(bad[i], &bytes) ?: "",
				"a size such as 512B, 64KB or 1MiB", "%s", bad[i]);
	cr_expect_str_eq(text_size("17592186044416MiB", &bytes), too_large);
	cr_expect_eq(bytes, 77);
}

Test(text, a_rate_is_bytes_or_bits_a_second)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "100B/s", 100 }, { "64KB/s", 64000 }, { "64KiB/s", 65536 }, { "1MB/s", 1000000 },
		{ "1MiB/s", 1048576 }, { "512kbit/s", 64000 }, { "8Mbit/s", 1000000 },
		{ "0.5kbit/s", 62 }, { "1GB/s", 1000000000 }, { "2GiB/s", 2147483648 },
		{ "1Gbit/s", 125000000 },
	};
	static const char *const bad[] = { "", "64", "64KB", "64KBps", "64/s", "512kbit", "1kB/s",
		"64KB/m" };
	uint64_t bytes;

	for (size_t i = 0; i < COUNT(good); i++) {
		cr_expect_null(text_rate(good[i].text, &bytes), "%s", good[i].text);
		cr_expect_eq(bytes, good[i].bytes, "%s: %lu", good[i].text, bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_str_eq(text_rate(bad[i], &bytes) ?: "",
				"a rate such as 64KB/s or 512kbit/s", "%s", bad[i]);
	cr_expect_eq(bytes, 77);
}
