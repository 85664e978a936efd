/* SPDX-License-Identifier: MIT */
/*
 * The path of every guarded name lookup: a circuit of its own per (rule, host). A hook may be left
 * by longjmp: an open lookup of a thread is settled by that thread's next hooked call.
 */
#ifndef SHUNT_SHIM_LOOKUP_H
#define SHUNT_SHIM_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>
#include <sys/types.h>

/* False: refused, answer EAI_AGAIN / TRY_AGAIN at once. Numeric and NULL hosts always pass. */
bool lookup_begin(const char *host);

/* getaddrinfo() returned `error`; learns the names of `list` on success. errno is kept. */
void lookup_ended(const char *host, int error, const struct addrinfo *list);

/* gethostbyname*() ended: `entry` or NULL with `h_error`. */
void lookup_host_ended(const char *host, const struct hostent *entry, int h_error);

/* Settles what this thread left open: timeout where it lasted `abandon`, otherwise cancelled. Cheap
 * where nothing is open. From connect, socket, close, a new lookup, and exit. */
void lookup_settle(void);

#endif
