/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer on one connection (docs/BEHAVIOUR.md section 2): fed what the program
 * did and saw, and when; says when a call begins and how it ended. Knows no sockets and no clock, so that
 * recorded traces can be replayed into it.
 *
 * An exchange never holds the permit: whoever does takes it out when a step says that the call ended,
 * which of racing threads exactly one is told. All fields that threads may share are atomics;
 * lock-free, allocates nothing, async-signal-safe. Times are CLOCK_MONOTONIC in nanoseconds and may
 * come from the coarse clock, a few milliseconds back. Zeroed memory is an exchange on which nothing
 * has happened.
 */
#ifndef SHUNT_SHIM_EXCHANGE_H
#define SHUNT_SHIM_EXCHANGE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/outcome.h"
#include "core/settings.h"
#include "shim/silence.h"
#include "shim/tls.h"

#define EXCHANGE_IDLE_NS 1000000000ull /* established and nothing sent for this long: unused */

enum exchange_flag {
	EXCHANGE_OPEN = 1 << 0,        /* a call is open on it */
	EXCHANGE_PENDING = 1 << 1,     /* connecting */
	EXCHANGE_ESTABLISHED = 1 << 2,
	EXCHANGE_SENT = 1 << 3,        /* the open call is the first, and has sent a byte */
	EXCHANGE_ANSWERED = 1 << 4,    /* some call had an answer: the next send starts another */
	EXCHANGE_TLS = 1 << 5,
	EXCHANGE_UNMETERED = 1 << 6,   /* SSH, rsync, HTTP/2, stdio, fork: no further calls */
	EXCHANGE_CUT = 1 << 7,         /* refused in mid-life: dead until closed */
	EXCHANGE_SHUT_WRITE = 1 << 8,
	EXCHANGE_REUSED = 1 << 9,      /* the open call is not the connection's first */
	EXCHANGE_RECEIVE_TIMEOUT = 1 << 10, /* SO_RCVTIMEO is set */
	/* The module's own: */
	EXCHANGE_SPOKEN = 1 << 11, /* a byte was sent since the connection was made */
	EXCHANGE_BLIND = 1 << 12,  /* unmetered from the first answer on */
	EXCHANGE_IDLED = 1 << 13,  /* nothing was sent for too long: the first send starts a call */
};

struct exchange {
	_Atomic uint32_t flags;
	_Atomic uint32_t receive_timeout_ms;
	_Atomic uint64_t began_ns;       /* of the open call */
	struct silence silence;
	struct tls tls;
};

static_assert(sizeof(struct exchange) <= 104, "there is one in every connection");

/* What an event came to. */
struct exchange_step {
	enum outcome ended;  /* how the open call ended with this event; NONE: it did not */
	bool starts_call;    /* exchange_will_send(): a new call; get a permit before sending */
	bool is_silent;      /* just established, nothing sent yet: a probe's lease shrinks */
	bool has_spoken;     /* first byte sent on a connection that was silent: full lease again */
};

/* A new attempt, for which a permit was given; whatever was before is forgotten, except
 * SO_RCVTIMEO. */
void exchange_begin(struct exchange *exchange, uint64_t now_ns);

/* connect() returned: first or later ones of the attempt. `error` 0, EISCONN, EINPROGRESS, EALREADY,
 * EINTR or a real errno. */
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
/* False: another thread began a call meanwhile. The permit goes back as UNUSED; send all the same. */
bool exchange_call(struct exchange *exchange, uint64_t now_ns);
void exchange_cut(struct exchange *exchange);

/* send() returned `result` bytes (-1 with `error`). A call that exchange_call() began for this very
 * send and that sent nothing (EAGAIN, EINTR) ends as UNUSED. */
struct exchange_step exchange_sent(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, uint64_t now_ns);

/* recv() returned. `began_ns` is when it was called, or 0 where exchange_times_receive() was false.
 * The data of a peek is looked at but not moved over. No vectors for data that isn't in them: out of
 * sight, or thrown away (MSG_TRUNC); not to be told of urgent data and of the error queue. */
struct exchange_step exchange_received(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, bool is_peek, uint64_t began_ns,
		uint64_t now_ns);

/* A recv, or a poll or select as below, begins. Need not be told, and what it began need not return:
 * where it is told, a wait counts from its beginning, and holds exchange_idle() off. */
void exchange_wait_begins(struct exchange *exchange, uint64_t now_ns);

/* poll or select with a non-zero timeout that named the descriptor for reading returned. */
struct exchange_step exchange_waited(struct exchange *exchange, const struct settings *settings,
		uint64_t began_ns, uint64_t now_ns);

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
struct exchange_step exchange_left_to_stdio(struct exchange *exchange,
		const struct settings *settings, uint64_t now_ns);

/* A second after establishment with nothing sent and nobody waiting: UNUSED. May be called at any
 * time. */
struct exchange_step exchange_idle(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);

void exchange_set_receive_timeout(struct exchange *exchange, uint64_t timeout_ns);

static inline uint32_t exchange_flags(const struct exchange *exchange)
{
	return atomic_load_explicit(&exchange->flags, memory_order_acquire);
}

static inline bool exchange_has(const struct exchange *exchange, uint32_t flags)
{
	return exchange_flags(exchange) & flags;
}

/* Would a connect() be a new attempt (exchange_begin() after a permit), not a later step of this? */
static inline bool exchange_is_new_attempt(const struct exchange *exchange)
{
	return !exchange_has(exchange,
		EXCHANGE_PENDING | EXCHANGE_ESTABLISHED | EXCHANGE_UNMETERED | EXCHANGE_CUT);
}

/* Is it established, with nothing sent and no call before the open one? */
static inline bool exchange_flags_are_silent(uint32_t flags)
{
	return (flags & (EXCHANGE_OPEN | EXCHANGE_ESTABLISHED | EXCHANGE_SENT | EXCHANGE_REUSED)) ==
		(EXCHANGE_OPEN | EXCHANGE_ESTABLISHED);
}

/* In the middle of an exchange, or not metered: a send can neither start a call nor be refused, and
 * exchange_will_send() need not be asked. (EXCHANGE_CUT is looked at before.) */
static inline bool exchange_is_sending(const struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	if (flags & (EXCHANGE_OPEN | EXCHANGE_UNMETERED))
		return !exchange_flags_are_silent(flags);
	return !(flags & (EXCHANGE_ANSWERED | EXCHANGE_IDLED));
}

/* Would exchange_sent() change anything, whatever the result? */
static inline bool exchange_minds_sent(const struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	if (flags & EXCHANGE_OPEN)
		return true;
	if (flags & EXCHANGE_UNMETERED)
		return false;
	return (flags & (EXCHANGE_TLS | EXCHANGE_SPOKEN)) != EXCHANGE_SPOKEN;
}

/* Would exchange_received() change anything, whatever the result? False in the middle of an answer:
 * then neither it nor a clock is needed. */
static inline bool exchange_minds_receive(const struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	if (flags & EXCHANGE_OPEN)
		return true;
	if (flags & EXCHANGE_UNMETERED)
		return false;
	return (flags & (EXCHANGE_TLS | EXCHANGE_ANSWERED)) != EXCHANGE_ANSWERED;
}

/* Does the beginning of a recv, poll or select matter now (a greeting is awaited, SO_RCVTIMEO)? */
static inline bool exchange_times_receive(const struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	return exchange_flags_are_silent(flags) ||
		(flags & (EXCHANGE_OPEN | EXCHANGE_RECEIVE_TIMEOUT)) ==
		(EXCHANGE_OPEN | EXCHANGE_RECEIVE_TIMEOUT);
}

#endif
