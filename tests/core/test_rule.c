/* SPDX-License-Identifier: MIT */
#include "core/rule.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char error[256];

static struct rule parsed(const char *text)
{
	struct rule rule;

	cr_assert(rule_parse("PAY", text, strlen(text), &rule, error, sizeof(error)), "%s: %s",
			text, error);
	return rule;
}

Test(rule, is_a_target_and_settings)
{
	struct rule rule = parsed("pay.internal:443 errors=25% volume=3 window=10s sleep=2s");

	cr_expect_str_eq(rule.name, "PAY");
	cr_expect_str_eq(rule.target.host, "pay.internal");
	cr_expect_eq(rule.target.port_low, 443);
	cr_expect_eq(rule.settings.errors_ratio, 250000);
	cr_expect_eq(rule.settings.volume, 3);
	cr_expect_eq(rule.settings.sleep_ms, 2000);
	cr_expect_eq(rule.settings.lease_ms, 2000);
}

Test(rule, space_and_comma_separate_alike)
{
	static const char *const same[] = { "10.0.0.0/8:5432,volume=5,sleep=2s",
		"10.0.0.0/8:5432 volume=5 sleep=2s", "  10.0.0.0/8:5432 , volume=5 ,, sleep=2s , ",
		",10.0.0.0/8:5432\tvolume=5\nsleep=2s\r\n" };

	for (size_t i = 0; i < COUNT(same); i++) {
		struct rule rule = parsed(same[i]);

		cr_expect_eq(rule.target.kind, TARGET_RANGE);
		cr_expect_eq(rule.target.port_low, 5432);
		cr_expect_eq(rule.settings.volume, 5);
		cr_expect_eq(rule.settings.sleep_ms, 2000);
	}
}

Test(rule, words_behind_a_list_and_a_comma_belong_to_it)
{
	struct rule rule = parsed("pay ignore=ECONNRESET,EPIPE,volume=5 fail=EPROTO , ETIMEDOUT");

	cr_expect(error_set_has_errno(&rule.settings.ignore, ECONNRESET));
	cr_expect(error_set_has_errno(&rule.settings.ignore, EPIPE));
	cr_expect(error_set_has_errno(&rule.settings.fail, EPROTO));
	cr_expect(error_set_has_errno(&rule.settings.fail, ETIMEDOUT));
	cr_expect_eq(rule.settings.volume, 5);
}

Test(rule, a_list_may_be_given_again)
{
	struct rule rule = parsed("pay,ignore=EPIPE,volume=5,ignore=EPROTO");

	cr_expect(error_set_has_errno(&rule.settings.ignore, EPIPE));
	cr_expect(error_set_has_errno(&rule.settings.ignore, EPROTO));
}

Test(rule, an_exclusion_is_a_target_alone)
{
	cr_expect(parsed("^pay:443").target.is_excluded);
	cr_expect(parsed(" ^any, ").target.is_excluded);
}

Test(rule, what_is_wrong_is_said)
{
	static const char *const cases[][2] = {
			{"", "expected a target such as pay.internal:443, got nothing"},
			{" ,\t\n", "expected a target such as pay.internal:443, got nothing"},
			{"volume=5", "expected a target such as pay.internal:443 before the "
				     "settings, got 'volume=5'"},
			{"pay:0", "expected a port from 1 to 65535, or a range such as 8000-8999, "
				  "got 'pay:0'"},
			{"10.1.2.3/8 volume=5",
					"expected a prefix without bits beyond its length, got "
					"'10.1.2.3/8', did you mean 10.0.0.0/8?"},
			{"pay sleep=5", "sleep: expected a duration such as 250ms, 5s or 1m, got "
					"'5'"},
			{"pay slep=5s", "setting: expected a known one, got 'slep', did you mean "
					"sleep?"},
			{"pay timeout=800", "timeout: expected a duration such as 250ms, 5s or 1m, "
					    "or off, got '800'"},
			{"pay other", "expected setting=value, got 'other'"},
			{"pay ^other", "expected setting=value, got '^other'"},
			{"pay volume 5", "expected setting=value, got 'volume'"},
			{"pay volume = 5", "expected setting=value, got 'volume'"},
			{"pay volume=5,EPIPE", "expected setting=value, got 'EPIPE'"},
			{"pay ignore=EPIPE ECONNRESET", "expected setting=value, got 'ECONNRESET'"},
			{"pay ignore=EPIPE,volume=5,ECONNRESET",
					"expected setting=value, got 'ECONNRESET'"},
			{"pay ignore=EPIPE,EPIP",
					"ignore: expected names of errors such as ECONNRESET or "
					"EAI_AGAIN, got 'EPIP', did you mean EPIPE?"},
			{"pay ignore=EPIPE fail=EPIPE", "fail: EPIPE is in ignore too"},
			{"pay ignore= volume=5", "ignore: expected names of errors such as "
						 "ECONNRESET or EAI_AGAIN, got ''"},
			{"pay sleep=5s sleep=6s", "sleep: expected it once, got '6s' as well"},
			{"pay =5", "setting: expected a known one, got ''"},
			{"pay sleep==5s", "sleep: expected a duration such as 250ms, 5s or 1m, got "
					  "'=5s'"},
			{"^pay volume=5", "expected no settings behind ^target, got 'volume=5'"},
			{"pay \xc3\xa9=1", "setting: expected a known one, got '\\xc3\\xa9'"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *text = cases[i][0];
		struct rule rule;

		cr_assert_not(rule_parse("PAY", text, strlen(text), &rule, error, sizeof(error)),
				"%s", text);
		cr_expect_str_eq(error, cases[i][1], "%s: %s", text, error);
	}
}

Test(rule, a_nul_byte_never_ends_a_word)
{
	static const char text[] = "pay sleep=5s\0junk", target[] = "pay\0x volume=5";
	struct rule rule;

	cr_expect_not(rule_parse("PAY", text, sizeof(text) - 1, &rule, error, sizeof(error)));
	cr_expect_str_eq(error, "expected setting=value, got 'sleep=5s\\x00junk'");
	cr_expect_not(rule_parse("PAY", target, sizeof(target) - 1, &rule, error, sizeof(error)));
	cr_expect_str_eq(error, "expected text without a NUL byte, at most 511 bytes of it, "
				"got 'pay\\x00x'");
}

static bool parse_large(size_t size, const char *unit)
{
	size_t length = strlen(unit), used = 4;
	char *text = malloc(size);
	struct rule rule;

	cr_assert_not_null(text);
	memcpy(text, "pay ", 4);
	for (; used + length <= size; used += length)
		memcpy(text + used, unit, length);
	bool is_good = rule_parse("PAY", text, used, &rule, error, sizeof(error));
	free(text);
	return is_good;
}

Test(rule, of_any_size_ends_in_a_short_message, .timeout = 60)
{
	cr_expect_not(parse_large(64 * 1024, "x"));
	cr_expect_str_eq(error,
			"expected setting=value, got "
			"'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'");
	cr_expect_not(parse_large(1024 * 1024, "volume=5 "));
	cr_expect_str_eq(error, "volume: expected it once, got '5' as well");
	cr_expect_not(parse_large(64 * 1024, "\xff"));
	cr_expect(parse_large(4 * 1024 * 1024, "ignore=EPIPE,EPROTO "));
	cr_expect(parse_large(4 * 1024 * 1024, " ,"));
}

Test(rule, the_hash_covers_name_and_window_only)
{
	struct rule rule = parsed("pay volume=5"), other = parsed("other:1 sleep=1s errors=1%");
	struct rule window = parsed("pay window=9s"), buckets = parsed("pay buckets=9"), renamed;

	cr_assert(rule_parse("PAZ", "pay volume=5", 12, &renamed, error, sizeof(error)));
	cr_expect_eq(rule.hash, other.hash);
	cr_expect_neq(rule.hash, window.hash);
	cr_expect_neq(rule.hash, buckets.hash);
	cr_expect_neq(rule.hash, renamed.hash);
	cr_expect_neq(parsed("pay window=9calls").hash, parsed("pay window=8calls").hash);
}

Test(rule, exclusions_come_first_then_the_specific_then_by_name)
{
	struct rule exclusion = parsed("^any"), exact = parsed("pay"), any = parsed("any"),
		    same = exact;

	strcpy(same.name, "PAZ");
	cr_expect(rule_compare(&exclusion, &exact) < 0);
	cr_expect(rule_compare(&exact, &exclusion) > 0);
	cr_expect(rule_compare(&exact, &any) < 0);
	cr_expect(rule_compare(&exact, &same) < 0);
	cr_expect(rule_compare(&same, &exact) > 0);
	cr_expect_eq(rule_compare(&exact, &exact), 0);
}

Test(rule, names_are_letters_digits_and_two_signs)
{
	static const char longest[] =
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	cr_expect(rule_name_is_good("PAY", 3));
	cr_expect(rule_name_is_good("default", 7));
	cr_expect(rule_name_is_good(longest + 1, 63));
	cr_expect_not(rule_name_is_good(longest, 64));
	cr_expect_not(rule_name_is_good("", 0));
	cr_expect_not(rule_name_is_good("a b", 3));
	cr_expect_not(rule_name_is_good("a.b", 3));
	cr_expect_not(rule_name_is_good("a\0b", 3));
	cr_expect_not(rule_name_is_good("a@b", 3));
	cr_expect_not(rule_name_is_good("\xc3\xa9", 2));
}

Test(rule, is_found_by_its_name)
{
	struct rule rules[2] = { parsed("pay"), parsed("any") };

	strcpy(rules[1].name, "ANY");
	cr_expect_eq(rule_find(rules, 2, "PAY"), &rules[0]);
	cr_expect_eq(rule_find(rules, 2, "ANY"), &rules[1]);
	cr_expect_null(rule_find(rules, 1, "ANY"));
	cr_expect_null(rule_find(rules, 2, "PA"));
}

Test(rule, is_placed_where_it_belongs)
{
	static const char *const texts[] = { "any", "pay", "10.0.0.0/8", "^any", ".pay" };
	static const char *const order[] = { "^any", "pay", ".pay", "10.0.0.0/8", "any" };
	static struct rule rules[COUNT(texts)];

	for (size_t i = 0; i < COUNT(texts); i++) {
		rules[i] = parsed(texts[i]);
		rule_place(rules, i);
	}
	for (size_t i = 0; i < COUNT(order); i++)
		cr_expect_str_eq(rules[i].target.text, order[i]);
}
