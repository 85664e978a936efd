/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer on one connection (docs/BEHAVIOUR.md section 2): fed what the program
 * did and saw, and when; says when a call begins and how it ended. Knows no sockets and no clock,
 * so that recorded traces can be replayed into it.
 *
 * An exchange never holds the permit: whoever does takes it out when a step says that the call
 * ended, which of racing threads exactly one is told. All fields that threads may share are
 * atomics; lock-free, allocates nothing, async-signal-safe. Times are CLOCK_MONOTONIC in
 * nanoseconds and may come from the coarse clock, a few milliseconds back. Zeroed memory is an
 * exchange on which nothing has happened.
 */
#ifndef SHUNT_SHIM_EXCHANGE_H
#define SHUNT_SHIM_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/settings.h"
#include "shim/exchange_awaited.h"
#include "shim/exchange_state.h"

/* A new attempt, for which a permit was given; whatever was before is forgotten, except
 * SO_RCVTIMEO, and whether its calls have a deadline. */
void exchange_begin(struct exchange *exchange, uint64_t now_ns);

/* connect() returned: first or later ones of the attempt. `error` 0, EISCONN, EINPROGRESS,
 * EALREADY, EINTR or a real errno. */
struct exchange_step exchange_connected(struct exchange *exchange, const struct settings *settings,
		int error, uint64_t now_ns);

/* getsockopt(SO_ERROR) gave `error` (0: none). */
struct exchange_step exchange_so_error(struct exchange *exchange, const struct settings *settings,
		int error, uint64_t now_ns);

/*
 * The program is about to send. Where `starts_call` comes back, the caller asks for a permit; given
 * one it calls exchange_call(), and only then sends; refused it calls exchange_cut() and does not
 * send. `ended` may be set as well (UNUSED, a second after establishment): report it first.
 */
struct exchange_step exchange_will_send(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, uint64_t now_ns);
/* False: another thread began a call meanwhile. The permit goes back as UNUSED; send anyway. */
bool exchange_call(struct exchange *exchange, uint64_t now_ns);
void exchange_cut(struct exchange *exchange);
void exchange_uncut(struct exchange *exchange);

/* send() returned `result` bytes (-1 with `error`). A call that exchange_call() began for this very
 * send and that sent nothing (EAGAIN, EINTR) ends as UNUSED. */
struct exchange_step exchange_sent(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, uint64_t now_ns);

/* recv() returned. `began_ns` is when it was called, or 0 where exchange_times_receive() was false.
 * The data of a peek is looked at but not moved over. No vectors for data that isn't in them: out
 * of sight, or thrown away (MSG_TRUNC); not to be told of urgent data and of the error queue. */
struct exchange_step exchange_received(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, bool is_peek, uint64_t began_ns,
		uint64_t now_ns);

/* poll or select with a non-zero timeout that named the descriptor for reading returned. */
struct exchange_step exchange_waited(struct exchange *exchange, uint64_t began_ns,
		uint64_t now_ns);

/* `how` as of shutdown(), which succeeded. */
struct exchange_step exchange_shutdown(struct exchange *exchange, const struct settings *settings,
		int how, uint64_t now_ns);

/* Close of the last descriptor, dup2 over it, disconnect, or exit of the program. */
struct exchange_step exchange_closed(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);

/* fork, exec, death. Where a call was open: CANCELLED, and not metered any more. Otherwise nothing
 * changes. */
struct exchange_step exchange_cancelled(struct exchange *exchange);

/* fdopen(): stdio is invisible. The call is settled by its connect; not metered any more. */
struct exchange_step exchange_left_to_stdio(struct exchange *exchange);

#endif
