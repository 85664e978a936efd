/* SPDX-License-Identifier: MIT */
/* What a program asks a resolver: the arguments of getaddrinfo() or gethostbyname*() as a value. */
#ifndef SHUNT_SHIM_QUESTION_H
#define SHUNT_SHIM_QUESTION_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum question_kind {
	QUESTION_LIST,		/* getaddrinfo() */
	QUESTION_HOST,		/* gethostbyname(), gethostbyname_r() */
	QUESTION_HOST_OF_FAMILY /* gethostbyname2(), gethostbyname2_r() */
};

struct question {
	enum question_kind kind;
	const char *host;
	/* Of a list; each may be NULL. */
	const char *service;
	const struct addrinfo *hints;
	/* Of a host of one family. */
	int family;
};

/* What tells one question from another; strings by content. */
uint64_t question_hash(const struct question *question);
bool question_equals(const struct question *one, const struct question *other);

/* A copy that lives in `memory`, aligned for anything, of question_bytes(). */
size_t question_bytes(const struct question *question);
struct question question_copy(const struct question *question, void *memory);

#endif
