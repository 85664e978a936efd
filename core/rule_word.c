/* SPDX-License-Identifier: MIT */
#include "core/rule_word.h"

#include <string.h>

#include "core/text.h"

static bool is_separator(char c)
{
	return c == ' ' || c == ',' || c == '\t' || c == '\r' || c == '\n';
}

bool rule_word_next(struct rule_words *words, struct rule_word *ret)
{
	struct rule_word word = { 0 };

	for (; words->at < words->end && is_separator(*words->at); words->at++)
		word.behind_comma |= *words->at == ',';
	word.text = words->at;
	while (words->at < words->end && !is_separator(*words->at))
		words->at++;
	word.length = (size_t)(words->at - word.text);
	*ret = word;
	return word.length > 0;
}

bool rule_word_copy(const struct rule_word *word, char ret[RULE_WORD_SIZE])
{
	if (word->length >= RULE_WORD_SIZE || memchr(word->text, '\0', word->length))
		return false;
	memcpy(ret, word->text, word->length);
	ret[word->length] = '\0';
	return true;
}

bool rule_word_say(const char *expected, const struct rule_word *word, char *error, size_t size)
{
	text_expected(error, size, expected, word->text, word->length, NULL);
	return false;
}

/* Out of line, with the frame that it takes: targets are read in the host's calls, too. */
__attribute__((noinline)) static bool say_target(const char *expected,
		const struct rule_word *word, char copy[RULE_WORD_SIZE], char *error, size_t size)
{
	char suggested[TEXT_QUOTE_SIZE];

	rule_word_say(expected, word, error, size);
	if (rule_word_copy(word, copy) && target_suggest(copy, suggested, sizeof(suggested))) {
		size_t used = strlen(error);

		text_format(error + used, size - used, ", did you mean %s?", suggested);
	}
	return false;
}

bool rule_word_target(const struct rule_word *word, char copy[RULE_WORD_SIZE], struct target *ret,
		char *error, size_t size)
{
	const char *expected = "text without a NUL byte, at most 511 bytes of it";

	if (rule_word_copy(word, copy))
		expected = target_read(copy, ret);
	return !expected || say_target(expected, word, copy, error, size);
}
