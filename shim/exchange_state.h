/* SPDX-License-Identifier: MIT */
/*
 * What is known of an exchange: flags, times, TLS records. Threads may share one: flags change by
 * atomic steps, and of all that would end the open call exactly one does.
 */
#ifndef SHUNT_SHIM_EXCHANGE_STATE_H
#define SHUNT_SHIM_EXCHANGE_STATE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
	EXCHANGE_REUSED = 1 << 9,      /* a call after the connection's first has begun */
	EXCHANGE_RECEIVE_TIMEOUT = 1 << 10, /* SO_RCVTIMEO is set */
	EXCHANGE_DEADLINE = 1 << 14,        /* its calls have one (`timeout`) */
	EXCHANGE_TIMED_OUT = 1 << 15,       /* it passed: dead until closed */
	EXCHANGE_CANCELLED = 1 << 18, /* its call was, by fork, and goes on: it keeps its place */
	/* The module's own: */
	EXCHANGE_SPOKEN = 1 << 11, /* a byte was sent since the connection was made */
	EXCHANGE_BLIND = 1 << 12,  /* unmetered from the first answer on */
	EXCHANGE_IDLED = 1 << 13,  /* nothing was sent for too long: the first send starts a call */
	EXCHANGE_FAREWELL = 1 << 17, /* the last that the program sent: close_notify or an alert */
	EXCHANGE_EXPIRING = 1 << 16, /* somebody is about to end the open call, and no later one */
};

/* What every call needs comes first, and lies in one line of the cache (struct connection). */
struct exchange {
	_Atomic uint32_t flags;
	_Atomic uint32_t receive_timeout_ms;
	_Atomic uint64_t began_ns;       /* of the open call */
	struct silence silence;
	_Atomic uint64_t moved_ns;       /* it began, or the kernel took a byte; with a deadline */
	struct tls tls;
};

static_assert(sizeof(struct exchange) <= 104, "there is one in every connection");

/* What an event came to. Fits in a register. */
struct exchange_step {
	enum outcome ended : 8; /* how the open call ended with this event; NONE: it did not */
	bool starts_call;    /* exchange_will_send(): a new call; get a permit before sending */
	bool is_silent;      /* just established, nothing sent yet: a probe's lease shrinks */
	bool has_spoken;     /* first byte sent on a connection that was silent: full lease again */
};

static_assert(sizeof(struct exchange_step) == 4, "every event returns one");

#define EXCHANGE_NOTHING ((struct exchange_step){ .ended = OUTCOME_NONE })

static inline uint32_t exchange_flags(const struct exchange *exchange)
{
	return atomic_load_explicit(&exchange->flags, memory_order_acquire);
}

static inline bool exchange_has(const struct exchange *exchange, uint32_t flags)
{
	return exchange_flags(exchange) & flags;
}

/* Would a connect() be a new attempt (exchange_begin() after a permit), not a step of this one? */
static inline bool exchange_is_new_attempt(const struct exchange *exchange)
{
	return !exchange_has(exchange,
		EXCHANGE_PENDING | EXCHANGE_ESTABLISHED | EXCHANGE_UNMETERED | EXCHANGE_CUT |
		EXCHANGE_TIMED_OUT);
}

/* Is it established, with nothing sent and no call before the open one? */
static inline bool exchange_flags_are_silent(uint32_t flags)
{
	return (flags & (EXCHANGE_OPEN | EXCHANGE_ESTABLISHED | EXCHANGE_SENT | EXCHANGE_REUSED)) ==
		(EXCHANGE_OPEN | EXCHANGE_ESTABLISHED);
}

/* The first call of a TLS connection is open: what is sent decides what is an answer. */
static inline bool exchange_flags_await_tls(uint32_t flags)
{
	return (flags & (EXCHANGE_OPEN | EXCHANGE_TLS | EXCHANGE_ANSWERED)) ==
		(EXCHANGE_OPEN | EXCHANGE_TLS);
}

/* In the middle of an exchange, or not metered: a send can neither start a call nor be refused, and
 * exchange_will_send() need not be asked. (EXCHANGE_CUT is looked at before.) */
static inline bool exchange_flags_are_sending(uint32_t flags)
{
	if (exchange_flags_await_tls(flags))
		return false;
	if (flags & (EXCHANGE_OPEN | EXCHANGE_UNMETERED))
		return !exchange_flags_are_silent(flags);
	return !(flags & (EXCHANGE_ANSWERED | EXCHANGE_IDLED));
}

static inline bool exchange_is_sending(const struct exchange *exchange)
{
	return exchange_flags_are_sending(exchange_flags(exchange));
}

/* Would exchange_sent() change anything, whatever the result? */
static inline bool exchange_flags_mind_sent(uint32_t flags)
{
	if (flags & EXCHANGE_OPEN)
		return true;
	if (flags & EXCHANGE_UNMETERED)
		return false;
	return (flags & (EXCHANGE_TLS | EXCHANGE_SPOKEN)) != EXCHANGE_SPOKEN;
}

static inline bool exchange_minds_sent(const struct exchange *exchange)
{
	return exchange_flags_mind_sent(exchange_flags(exchange));
}

/* Would exchange_received() change anything, whatever the result? False in the middle of an answer:
 * then neither it nor a clock is needed. */
static inline bool exchange_flags_mind_receive(uint32_t flags)
{
	if (flags & (EXCHANGE_OPEN | EXCHANGE_CANCELLED))
		return true;
	if (flags & EXCHANGE_UNMETERED)
		return false;
	return (flags & (EXCHANGE_TLS | EXCHANGE_ANSWERED)) != EXCHANGE_ANSWERED;
}

static inline bool exchange_minds_receive(const struct exchange *exchange)
{
	return exchange_flags_mind_receive(exchange_flags(exchange));
}

/* A call after the connection's first, without TLS and deadlines: of all that the exchange is told,
 * a byte that is sent breaks the silence, and a byte that comes ends the call. */
static inline bool exchange_flags_are_routine(uint32_t flags)
{
	const uint32_t must = EXCHANGE_OPEN | EXCHANGE_ESTABLISHED | EXCHANGE_ANSWERED |
			EXCHANGE_SPOKEN;
	const uint32_t must_not = EXCHANGE_PENDING | EXCHANGE_TLS | EXCHANGE_BLIND |
			EXCHANGE_CUT | EXCHANGE_DEADLINE | EXCHANGE_TIMED_OUT;

	return (flags & (must | must_not)) == must;
}

/* Does the beginning of a recv, poll or select matter now (a greeting is awaited, SO_RCVTIMEO, a
 * deadline)? */
static inline bool exchange_flags_time_receive(uint32_t flags)
{
	return exchange_flags_are_silent(flags) || ((flags & EXCHANGE_OPEN) &&
		(flags & (EXCHANGE_RECEIVE_TIMEOUT | EXCHANGE_DEADLINE)));
}

static inline bool exchange_times_receive(const struct exchange *exchange)
{
	return exchange_flags_time_receive(exchange_flags(exchange));
}

/* acq_rel: who sees a flag also sees the times that were written before it was set. */
static inline void exchange_set(struct exchange *exchange, uint32_t flags)
{
	atomic_fetch_or_explicit(&exchange->flags, flags, memory_order_acq_rel);
}

static inline void exchange_clear(struct exchange *exchange, uint32_t flags)
{
	atomic_fetch_and_explicit(&exchange->flags, ~flags, memory_order_acq_rel);
}

/* Opens a call; false where one is open already. */
bool exchange_open(struct exchange *exchange);

/* Ends the open call with that outcome: told to one of all that try, nothing to the others. */
struct exchange_step exchange_end(struct exchange *exchange, enum outcome outcome);

/* The same, with the outcome that follows from what is known: an errno, EOF in place of an answer,
 * the program's own giving up. */
struct exchange_step exchange_end_by_error(struct exchange *exchange,
		const struct settings *settings, int error, uint64_t now_ns);
struct exchange_step exchange_end_by_eof(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);
struct exchange_step exchange_end_by_close(struct exchange *exchange,
		const struct settings *settings, uint64_t now_ns);

/* The program set SO_RCVTIMEO; 0: none. */
void exchange_set_receive_timeout(struct exchange *exchange, uint64_t timeout_ns);

/* Did the program wait for `abandon` or longer? */
bool exchange_has_waited(const struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);

#endif
