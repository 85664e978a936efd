/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer on one connection (DESIGN.md section 3): fed what the program did and
 * saw, and when; says when a call begins and how it ended. Knows no sockets and no clock, so that
 * recorded traces can be replayed into it.
 *
 * An exchange never holds the permit: whoever does swaps it out when a step says that the call ended,
 * so that racing threads settle it exactly once. All fields that threads may share are atomics;
 * lock-free, allocates nothing, async-signal-safe. Times are CLOCK_MONOTONIC in nanoseconds and may
 * come from the coarse clock, a few milliseconds back. Zeroed memory is an exchange on which nothing
 * has happened.
 */
#ifndef SHUNT_SHIM_EXCHANGE_H
#define SHUNT_SHIM_EXCHANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "core/outcome.h"
#include "core/settings.h"
#include "shim/tls.h"

#define EXCHANGE_IDLE_NS 1000000000ull /* established and nothing sent for this long: unused */

enum exchange_flag {
	EXCHANGE_OPEN = 1 << 0,        /* a call is open on it */
	EXCHANGE_PENDING = 1 << 1,     /* connecting */
	EXCHANGE_ESTABLISHED = 1 << 2,
	EXCHANGE_SENT = 1 << 3,        /* the open call has sent a byte */
	EXCHANGE_ANSWERED = 1 << 4,    /* some call had an answer: the next send starts another */
	EXCHANGE_TLS = 1 << 5,
	EXCHANGE_UNMETERED = 1 << 6,   /* SSH, rsync, HTTP/2, stdio, fork: no further calls */
	EXCHANGE_CUT = 1 << 7,         /* refused in mid-life: dead until closed */
	EXCHANGE_SHUT_WRITE = 1 << 8,
	EXCHANGE_REUSED = 1 << 9,      /* the open call is not the connection's first */
	EXCHANGE_RECEIVE_TIMEOUT = 1 << 10, /* SO_RCVTIMEO is set */
	/* further flags are the module's own */
};

struct exchange {
	_Atomic uint32_t flags;
	_Atomic uint32_t receive_timeout_ms;
	_Atomic uint64_t began_ns;       /* of the open call */
	_Atomic uint64_t active_ns;      /* last byte sent or received in it */
	_Atomic uint64_t waited_ns;      /* its longest stretch of silence so far */
	_Atomic uint64_t established_ns;
	_Atomic uint64_t greeting_ns;    /* how long the program sat waiting for a greeting */
	_Atomic uint64_t tls_sent_ns;    /* last application data sent */
	_Atomic uint32_t round_trip_us;  /* of the TLS handshake */
	struct tls_reader sent, received;
	uint16_t ticket_length;
	uint8_t ticket_count;
	uint8_t tls_state;
};

/* What an event came to. */
struct exchange_step {
	enum outcome ended;  /* how the open call ended with this event; NONE: it did not */
	bool starts_call;    /* exchange_will_send(): a new call; get a permit before sending */
	bool is_silent;      /* just established, nothing sent yet: a probe's lease shrinks */
	bool has_spoken;     /* first byte sent on a connection that was silent: full lease again */
};

struct bytes {
	const struct iovec *vectors; /* NULL where the data is out of sight (sendfile, splice) */
	size_t count;
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
void exchange_call(struct exchange *exchange, uint64_t now_ns);
void exchange_cut(struct exchange *exchange);

/* send() returned `result` bytes (-1 with `error`). A call that exchange_call() began for this very
 * send and that sent nothing (EAGAIN, EINTR) ends as UNUSED. */
struct exchange_step exchange_sent(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, uint64_t now_ns);

/* recv() returned. `began_ns` is when it was called, or 0 where exchange_times_receive() was false.
 * The data of a peek is looked at but not moved over. */
struct exchange_step exchange_received(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, bool is_peek, uint64_t began_ns,
		uint64_t now_ns);

/* Does the beginning of a recv, poll or select matter now (a greeting is awaited, SO_RCVTIMEO)? */
bool exchange_times_receive(const struct exchange *exchange);

/* Would exchange_received() with data change anything? False in the middle of an answer: then
 * neither it nor a clock is needed. */
bool exchange_minds_receive(const struct exchange *exchange);

/* poll or select with a non-zero timeout that named the descriptor for reading returned. */
struct exchange_step exchange_waited(struct exchange *exchange, const struct settings *settings,
		uint64_t began_ns, uint64_t now_ns);

/* `how` as of shutdown(), which succeeded. */
struct exchange_step exchange_shutdown(struct exchange *exchange, const struct settings *settings,
		int how, uint64_t now_ns);

/* Close of the last descriptor, dup2 over it, disconnect, or exit of the program. */
struct exchange_step exchange_closed(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);

/* fork with a call open, exec, death: CANCELLED where a call was open; not metered any more. */
struct exchange_step exchange_cancelled(struct exchange *exchange);

/* fdopen(): stdio is invisible. The call is settled by its connect; not metered any more. */
struct exchange_step exchange_left_to_stdio(struct exchange *exchange,
		const struct settings *settings, uint64_t now_ns);

/* A second after establishment with nothing sent and nobody waiting: UNUSED. May be called at any
 * time. */
struct exchange_step exchange_idle(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns);

void exchange_set_receive_timeout(struct exchange *exchange, uint64_t timeout_ns);

static inline bool exchange_has(const struct exchange *exchange, uint32_t flags)
{
	return atomic_load_explicit(&exchange->flags, memory_order_relaxed) & flags;
}

#endif
