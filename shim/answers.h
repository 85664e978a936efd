/* SPDX-License-Identifier: MIT */
/*
 * The last good answers of this process: at most 256 of them in 256 KiB, the one asked for longest
 * ago goes first. Locks and allocates, as the resolver does; blocks all signals meanwhile, so that
 * no handler leaves it locked. Answers that are out of all proportion are not kept.
 */
#ifndef SHUNT_SHIM_ANSWERS_H
#define SHUNT_SHIM_ANSWERS_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/question.h"

/* No kept answer with its question is larger. */
#define ANSWERS_BYTES_EACH (16 * 1024)

/* What libc answered just now. */
void answers_keep_list(
		const struct question *question, const struct addrinfo *list, uint64_t now_ns);
void answers_keep_entry(
		const struct question *question, const struct hostent *entry, uint64_t now_ns);

/* The answer, if it is no older than that: in every field what libc gave, for freeaddrinfo(). NULL:
 * none is kept. */
struct addrinfo *answers_list(
		const struct question *question, uint64_t max_age_ns, uint64_t now_ns);

enum answers_found { ANSWERS_NONE, ANSWERS_FOUND, ANSWERS_TOO_LARGE };

/* Into the caller's buffer; TOO_LARGE for that, *ret is untouched then. */
enum answers_found answers_entry(const struct question *question, uint64_t max_age_ns,
		uint64_t now_ns, struct hostent *ret, char *buffer, size_t size);

/* In a forked child: what its parent knew stays, unless it was being changed. */
void answers_forked(void);

#endif
