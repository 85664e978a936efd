/* SPDX-License-Identifier: MIT */
/* A piece of a longer text, not terminated; may hold any bytes. Pure, async-signal-safe. */
#ifndef SHUNT_CORE_SPAN_H
#define SHUNT_CORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

struct span {
	const char *text;
	size_t length;
};

/* All of a terminated text. */
struct span span_of(const char *text);

bool span_is(struct span span, const char *word);
bool span_begins(struct span span, const char *word);

/* Without its first `offset` bytes. */
struct span span_from(struct span span, size_t offset);

/* Without spaces, tabs and carriage returns at both ends. */
struct span span_trim(struct span span);

/* Without a # at its beginning or behind a blank, and what follows that. */
struct span span_without_comment(struct span span);

/* Takes what stands before the next `separator` off the front, and the separator with it. */
struct span span_take(struct span *span, char separator);

/* Takes what stands before a blank or = off the front; the rest is trimmed. */
struct span span_take_word(struct span *span);

#endif
