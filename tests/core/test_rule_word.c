/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/rule_word.h"

static char error[256], copy[RULE_WORD_SIZE];

Test(rule_word, space_and_comma_separate_and_are_told_apart)
{
	static const char text[] = " , one two,three\t\r\nfour,,";
	static const struct {
		const char *text;
		bool behind_comma;
	} expected[] = { { "one", true }, { "two", false }, { "three", true }, { "four", false } };
	struct rule_words words = { text, text + strlen(text) };
	struct rule_word word;

	for (size_t i = 0; i < 4; i++) {
		cr_assert(rule_word_next(&words, &word));
		cr_assert(rule_word_copy(&word, copy));
		cr_expect_str_eq(copy, expected[i].text);
		cr_expect_eq(word.behind_comma, expected[i].behind_comma);
	}
	cr_expect_not(rule_word_next(&words, &word));
}

Test(rule_word, a_word_too_long_or_with_a_nul_is_no_text)
{
	char text[RULE_WORD_SIZE];
	struct rule_word word = { .text = text, .length = sizeof(text) };

	memset(text, 'a', sizeof(text));
	cr_expect_not(rule_word_copy(&word, copy));
	word.length--;
	cr_expect(rule_word_copy(&word, copy));
	cr_expect_eq(strlen(copy), RULE_WORD_SIZE - 1);
	text[5] = '\0';
	cr_expect_not(rule_word_copy(&word, copy));
}

Test(rule_word, a_bad_target_is_said_with_what_was_meant)
{
	struct rule_word word = { .text = "10.1.2.3/8", .length = 10 };
	struct target target;

	cr_expect_not(rule_word_target(&word, copy, &target, error, sizeof(error)));
	cr_expect_str_eq(error, "expected a prefix without bits beyond its length, got "
		"'10.1.2.3/8', did you mean 10.0.0.0/8?");
	word.text = "10.0.0.0/8";
	cr_expect(rule_word_target(&word, copy, &target, error, sizeof(error)));
	cr_expect_eq(target.kind, TARGET_RANGE);
}

Test(rule_word, says_what_was_expected)
{
	struct rule_word word = { .text = "a\nb", .length = 3 };

	cr_expect_not(rule_word_say("peace", &word, error, sizeof(error)));
	cr_expect_str_eq(error, "expected peace, got 'a\\x0ab'");
}
