/* SPDX-License-Identifier: MIT */
#include "core/span.h"

#include <string.h>

struct span span_of(const char *text)
{
	return (struct span){ text, strlen(text) };
}

bool span_is(struct span span, const char *word)
{
	return strlen(word) == span.length && span_begins(span, word);
}

bool span_begins(struct span span, const char *word)
{
	size_t length = strlen(word);

	return length <= span.length && memcmp(span.text, word, length) == 0;
}

struct span span_from(struct span span, size_t offset)
{
	return (struct span){ span.text + offset, span.length - offset };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct span span_trim(struct span span)
{
	for (; span.length && is_blank(*span.text); span.length--)
		span.text++;
	while (span.length && is_blank(span.text[span.length - 1]))
		span.length--;
	return span;
}

struct span span_without_comment(struct span span)
{
	for (size_t i = 0; i < span.length; i++) {
		if (span.text[i] == '#' && (i == 0 || is_blank(span.text[i - 1])))
			return (struct span){ span.text, i };
	}
	return span;
}

struct span span_take(struct span *span, char separator)
{
	const char *end = span->length ? memchr(span->text, separator, span->length) : NULL;
	struct span taken = { span->text, end ? (size_t)(end - span->text) : span->length };

	*span = span_from(*span, taken.length + (end != NULL));
	return taken;
}

struct span span_take_word(struct span *span)
{
	struct span word = { span->text, 0 };

	while (word.length < span->length && !is_blank(word.text[word.length]) &&
			word.text[word.length] != '=')
		word.length++;
	*span = span_trim(span_from(*span, word.length));
	return word;
}
