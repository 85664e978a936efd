/* SPDX-License-Identifier: MIT */
/*
 * A lookup whose rule has more for it than a circuit (lookup_is_aided()). In this order: an answer
 * of the cache; the circuit; libc, on a thread of the pool where the rule bounds it; and where that
 * failed, did not end in time, was rejected or refused, the last good answer.
 *
 * Each is the whole of its hook from lookup_find() on, answers as libc does in every field, and
 * keeps errno on success. `frame` is that of the hook.
 */
#ifndef SHUNT_SHIM_RESOLVE_H
#define SHUNT_SHIM_RESOLVE_H

#include <netdb.h>
#include <stddef.h>

#include "shim/host_entry.h"
#include "shim/lookup.h"
#include "shim/question.h"

/* getaddrinfo() */
int resolve_list(const struct lookup *lookup, const struct question *question, void *frame,
		struct addrinfo **result);

/* gethostbyname(), gethostbyname2(): the entry is in static memory, as libc's is. */
struct hostent *resolve_host(
		const struct lookup *lookup, const struct question *question, void *frame);

int resolve_host_into(const struct lookup *lookup, const struct question *question, void *frame,
		struct host_room room);

/* What a resolver that does not answer comes to: errno, h_errno and the result. */
int resolve_refuse_list(void);
struct hostent *resolve_refuse_host(void);
int resolve_refuse_host_into(struct host_room room);

/* In a forked child. */
void resolve_forked(void);

#endif
