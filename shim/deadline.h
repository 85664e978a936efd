/* SPDX-License-Identifier: MIT */
/*
 * The deadlines of a connection's calls, where its rule has `timeout` (docs/BEHAVIOUR.md
 * section 5): when one passes, and what is done then.
 *
 * One runs while the attempt is made and while an answer is awaited, and starts again with every
 * byte the kernel takes, and with every one that it gets through to the peer. When it has passed,
 * exactly one of all who would end the call does; it is counted; and the connection is shut, which
 * wakes whoever waits on it in whatever way. From then on it answers ETIMEDOUT until it is closed.
 * A descriptor is shut only while it is pinned in the table and the kernel says that it still is
 * that very socket. While a thread is inside a send only the receiving side is, for the other would
 * raise SIGPIPE; the rest when that send returns. An answer that has come, or an end of file, and
 * that the program has not read yet is nobody's delay.
 *
 * All of it makes system calls, except where said, and none once a seccomp filter was seen.
 * Async-signal-safe, keeps errno.
 */
#ifndef SHUNT_SHIM_DEADLINE_H
#define SHUNT_SHIM_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/exchange_state.h"
#include "shim/fd_table.h"

/* At connect, before exchange_begin(): its calls have deadlines from now on, as the rule says, or
 * none. False where the rule wants them and cannot have them: a filter was seen. */
bool deadline_begin(struct connection *connection, int fd);

/* Have its calls deadlines? */
static inline bool deadline_applies(const struct connection *connection)
{
	return exchange_has(&connection->exchange, EXCHANGE_DEADLINE);
}

/* When that of the open call passes; 0: none runs. No system call. */
uint64_t deadline_ns(const struct connection *connection);

/* Did one pass? No system call. */
static inline bool deadline_has_passed(const struct connection *connection)
{
	return exchange_has(&connection->exchange, EXCHANGE_TIMED_OUT);
}

/* One did: is fd still that connection? False: it names another file by now. */
bool deadline_holds(const struct connection *connection, int fd);

/* A send begins that starts a call on an established connection: what has come so far is no answer
 * to it. */
void deadline_call_begins(struct connection *connection, int fd);

/* Around a send of a thread. False: one has passed, and nothing may be sent. Else the second must
 * follow; if it never does, the receiving side alone is shut in the end. */
bool deadline_send_begins(struct connection *connection);
void deadline_send_ends(struct connection *connection);

/* For a thread of the program: ends the open call if its deadline has passed. */
void deadline_enforce(struct connection *connection, uint64_t now_ns);

/* The timer thread's: ends all calls whose deadlines have passed. When to look again; UINT64_MAX:
 * when told to; 0: no connection's calls have deadlines. */
uint64_t deadlines_serve(uint64_t now_ns);

/* Are there connections whose calls have deadlines? No system call. */
bool deadlines_exist(void);

/* In a forked child: what was inherited belongs to the parent, and is never shut from here. */
void deadline_forget(struct connection *connection);

#endif
