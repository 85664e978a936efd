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
#include <sys/types.h>

/* False: refused, answer EAI_AGAIN / TRY_AGAIN at once. Numeric, empty and NULL hosts always pass.
 */
bool lookup_begin(const char *host);

/* getaddrinfo() returned `error` (with EAI_SYSTEM errno tells more); learns the names of `list` on
 * success. */
void lookup_ended(const char *host, int error, const struct addrinfo *list);

/* gethostbyname*() ended: `entry`, or NULL with `h_error` (with NETDB_INTERNAL errno tells more:
 * ERANGE is a buffer too small, and no outcome). */
void lookup_host_ended(const char *host, const struct hostent *entry, int h_error);

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
