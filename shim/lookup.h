/* SPDX-License-Identifier: MIT */
/*
 * The path of every guarded name lookup: a circuit of its own per (rule, host). A hook may be left
 * by longjmp: an open lookup of a thread is settled by that thread's next hooked call.
 *
 * Each thread has one open lookup at most, and at most 256 are open in all: of more, the oldest is
 * settled. Everything keeps errno and h_errno, and does nothing where runtime_is_judging() is
 * false.
 */
#ifndef SHUNT_SHIM_LOOKUP_H
#define SHUNT_SHIM_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>

#include "core/cell.h"
#include "core/config.h"
#include "core/outcome.h"

/* A lookup and the rule that judges it; NULL: none does. */
struct lookup {
	const char *host;
	const struct rule *rule;
	struct cell *cell;
};

/* A new lookup of the calling thread; settles what it left open. Numeric, empty and NULL hosts are
 * no rule's. */
struct lookup lookup_find(const char *host);

/* Has the rule more for it than a circuit: a timeout, a cache, stale answers? Not where it only
 * watches. */
bool lookup_is_aided(const struct lookup *lookup);

/* False: refused, answer as lookup_refuse...() at once. */
bool lookup_begin(const struct lookup *lookup);

/* getaddrinfo() returned `error` (with EAI_SYSTEM errno tells more); learns the names of `list` on
 * success. The outcome, NONE where no rule judges it. */
enum outcome lookup_ended(const struct lookup *lookup, int error, const struct addrinfo *list);

/* gethostbyname*() ended: `entry`, or NULL with `h_error` (with NETDB_INTERNAL errno tells more:
 * ERANGE is a buffer too small, and no outcome). */
enum outcome lookup_host_ended(
		const struct lookup *lookup, const struct hostent *entry, int h_error);

/* It did not end in time; no thread was free for it. */
void lookup_timed_out(const struct lookup *lookup);
void lookup_rejected(const struct lookup *lookup);

/* An earlier answer was given, open or not: counts it, and learns its names. */
void lookup_cached(const struct lookup *lookup, const struct addrinfo *list);
void lookup_host_cached(const struct lookup *lookup, const struct hostent *entry);

/* `frame` is __builtin_frame_address(0) of whoever asks: inside the thread's own resolver call
 * nothing is settled. */
void lookup_settle_from(void *frame);

/* Settles what this thread left open: timeout where it lasted `abandon`, otherwise cancelled. Cheap
 * where nothing is open. From connect, socket and close; a new lookup does it itself. */
static inline __attribute__((always_inline)) void lookup_settle(void)
{
	lookup_settle_from(__builtin_frame_address(0));
}

/* The same for all threads: the program exits (curl's -m leaves its resolver thread behind). */
void lookup_settle_all(void);

/* In a forked child: what is open is the parent's to settle. */
void lookup_forget(void);

/* An IPv4 or IPv6 address in any spelling that libc takes without asking a resolver: "127.1",
 * "0x7f000001", "fe80::1%eth0". Also "": that is no name. */
bool lookup_is_numeric(const char *host);

#endif
