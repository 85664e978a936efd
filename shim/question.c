/* SPDX-License-Identifier: MIT */
#include "shim/question.h"

#include <string.h>

#include "core/text.h"

/* The fields of the hints that libc looks at. */
struct wish {
	int is_given, flags, family, socktype, protocol;
};

static struct wish wish_of(const struct question *question)
{
	const struct addrinfo *hints = question->hints;

	if (!hints)
		return (struct wish){.family = question->family};
	return (struct wish){1, hints->ai_flags, hints->ai_family, hints->ai_socktype,
			hints->ai_protocol};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return text ? text_hash(hash, text, strlen(text) + 1) : hash;
}

uint64_t question_hash(const struct question *question)
{
	struct wish wish = wish_of(question);
	uint64_t hash = text_hash(question->kind, (const char *)&wish, sizeof(wish));

	return hash_text(hash_text(hash, question->host), question->service);
}

static bool text_equals(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

bool question_equals(const struct question *one, const struct question *other)
{
	struct wish wish = wish_of(one), other_wish = wish_of(other);

	return one->kind == other->kind && memcmp(&wish, &other_wish, sizeof(wish)) == 0 &&
	       text_equals(one->host, other->host) && text_equals(one->service, other->service);
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

size_t question_bytes(const struct question *question)
{
	return (question->hints ? sizeof(*question->hints) : 0) + text_bytes(question->host) +
	       text_bytes(question->service);
}

static const char *copy_text(char **memory, const char *text)
{
	char *copy = *memory;
	size_t size = text_bytes(text);

	if (!text)
		return NULL;
	*memory += size;
	return memcpy(copy, text, size);
}

struct question question_copy(const struct question *question, void *memory)
{
	struct question copy = *question;
	struct addrinfo *hints = memory;
	char *texts = memory;

	if (question->hints) {
		*hints = *question->hints;
		copy.hints = hints;
		texts += sizeof(*hints);
	}
	copy.host = copy_text(&texts, question->host);
	copy.service = copy_text(&texts, question->service);
	return copy;
}
