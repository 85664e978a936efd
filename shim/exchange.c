/* SPDX-License-Identifier: MIT */
#include "shim/exchange.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "shim/protocol.h"

#define NS_PER_MS 1000000ull

/* What is not for every call, kept out of what is; and what happens but once to a connection. */
#define SELDOM __attribute__((noinline)) static
#define RARE   __attribute__((cold, noinline)) static


static void note_move(struct exchange *exchange, uint32_t flags, uint64_t now_ns)
{
	if (flags & EXCHANGE_DEADLINE)
		atomic_store_explicit(&exchange->moved_ns, now_ns, memory_order_relaxed);
}

void exchange_begin(struct exchange *exchange, uint64_t now_ns)
{
	uint32_t kept = exchange_flags(exchange) & (EXCHANGE_RECEIVE_TIMEOUT | EXCHANGE_DEADLINE);

	atomic_store_explicit(&exchange->began_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&exchange->moved_ns, now_ns, memory_order_relaxed);
	silence_begin(&exchange->silence, now_ns);
	tls_begin(&exchange->tls);
	/* Release: the times are there before the call is. */
	atomic_store_explicit(&exchange->flags, kept | EXCHANGE_OPEN | EXCHANGE_PENDING,
			memory_order_release);
}

/* The attempt is complete, by whatever sign. Where only that is metered, it is success. */
static struct exchange_step establish(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns)
{
	uint32_t flags;

	silence_establish(&exchange->silence, now_ns);
	exchange_set(exchange, EXCHANGE_ESTABLISHED);
	exchange_clear(exchange, EXCHANGE_PENDING);
	if (settings->guard == GUARD_CONNECT)
		exchange_set(exchange, EXCHANGE_UNMETERED);
	flags = exchange_flags(exchange);
	if (flags & EXCHANGE_UNMETERED)
		return exchange_end(exchange, OUTCOME_SUCCESS);
	return (struct exchange_step){ .is_silent = exchange_flags_are_silent(flags) };
}

struct exchange_step exchange_connected(struct exchange *exchange, const struct settings *settings,
		int error, uint64_t now_ns)
{
	if (!exchange_has(exchange, EXCHANGE_PENDING))
		return EXCHANGE_NOTHING;
	if (error == EINPROGRESS || error == EALREADY || error == EINTR)
		return EXCHANGE_NOTHING;
	if (error == 0 || error == EISCONN)
		return establish(exchange, settings, now_ns);
	return exchange_end_by_error(exchange, settings, error, now_ns);
}

struct exchange_step exchange_so_error(struct exchange *exchange, const struct settings *settings,
		int error, uint64_t now_ns)
{
	if (!exchange_has(exchange, EXCHANGE_OPEN))
		return EXCHANGE_NOTHING;
	if (error)
		return exchange_end_by_error(exchange, settings, error, now_ns);
	if (exchange_has(exchange, EXCHANGE_PENDING))
		return establish(exchange, settings, now_ns);
	return EXCHANGE_NOTHING;
}

static uint32_t protocol_flag(struct bytes bytes)
{
	switch (protocol_of(bytes)) {
	case PROTOCOL_TLS:
		return EXCHANGE_TLS;
	case PROTOCOL_BLIND:
		return EXCHANGE_BLIND;
	default:
		return 0;
	}
}

/* On a connection that had an answer: does a request begin with these bytes? */
static bool begins_request(struct exchange *exchange, uint32_t flags, struct bytes bytes)
{
	if (!(flags & EXCHANGE_SPOKEN))
		flags |= protocol_flag(bytes);
	if (flags & EXCHANGE_BLIND) {
		exchange_set(exchange, EXCHANGE_UNMETERED);
		return false;
	}
	return !(flags & EXCHANGE_TLS) || tls_will_send(&exchange->tls, bytes) != TLS_NOTHING;
}

/* The first send on a connection that was silent too long, or that a greeting was awaited on. */
RARE struct exchange_step leave_silence(struct exchange *exchange,
		const struct settings *settings, uint64_t now_ns)
{
	bool has_waited = exchange_has_waited(exchange, settings, now_ns);
	struct exchange_step step;

	if (!has_waited && silence_since_established_ns(&exchange->silence, now_ns) <
			EXCHANGE_IDLE_NS)
		return EXCHANGE_NOTHING;
	exchange_set(exchange, EXCHANGE_IDLED);
	step = exchange_end(exchange, has_waited ? OUTCOME_TIMEOUT : OUTCOME_UNUSED);
	step.starts_call = true;
	return step;
}

/* Another thread may read the answer, or a part of the handshake, before the send returns. */
SELDOM void foresee(struct exchange *exchange, struct bytes bytes, uint64_t now_ns)
{
	if (!exchange_has(exchange, EXCHANGE_SPOKEN) && protocol_flag(bytes) == EXCHANGE_TLS)
		exchange_set(exchange, EXCHANGE_TLS);
	if (exchange_has(exchange, EXCHANGE_TLS))
		tls_foresee(&exchange->tls, bytes, now_ns);
}

struct exchange_step exchange_will_send(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange);

	if ((flags & (EXCHANGE_CUT | EXCHANGE_TIMED_OUT)) || exchange_flags_are_sending(flags))
		return EXCHANGE_NOTHING;
	if (!(flags & EXCHANGE_ANSWERED))
		foresee(exchange, bytes, now_ns);
	if (bytes_are_empty(bytes))
		return EXCHANGE_NOTHING;
	if (exchange_flags_are_silent(flags))
		return leave_silence(exchange, settings, now_ns);
	return (struct exchange_step){
		.starts_call = flags & EXCHANGE_ANSWERED ? begins_request(exchange, flags, bytes)
							 : !(flags & EXCHANGE_OPEN),
	};
}

bool exchange_call(struct exchange *exchange, uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange);

	if (flags & EXCHANGE_OPEN)
		return false;
	atomic_store_explicit(&exchange->began_ns, now_ns, memory_order_relaxed);
	note_move(exchange, flags, now_ns);
	silence_begin_call(&exchange->silence, now_ns);
	if (!(flags & EXCHANGE_REUSED))
		exchange_set(exchange, EXCHANGE_REUSED);
	return exchange_open(exchange);
}

void exchange_cut(struct exchange *exchange)
{
	exchange_set(exchange, EXCHANGE_CUT);
}

void exchange_uncut(struct exchange *exchange)
{
	exchange_clear(exchange, EXCHANGE_CUT);
}

/* The kernel took over, or it never was TLS: from here on, bytes are what they are. */
static void leave_tls(struct exchange *exchange)
{
	exchange_clear(exchange, EXCHANGE_TLS);
}

/* After the program's own farewell the server's leaving is no news, and a server that left without
 * reading it resets the connection. A piece of data may look like one, and more data follows. */
SELDOM void sent_tls(struct exchange *exchange, struct bytes bytes, size_t size, uint64_t now_ns)
{
	enum tls_sight sight = tls_sent(&exchange->tls, bytes, size, now_ns);

	if (sight == TLS_BROKEN)
		leave_tls(exchange);
	else if (sight == TLS_FAREWELL)
		exchange_set(exchange, EXCHANGE_FAREWELL);
	else if (sight == TLS_REQUEST && exchange_has(exchange, EXCHANGE_FAREWELL))
		exchange_clear(exchange, EXCHANGE_FAREWELL);
}

RARE struct exchange_step sent_nothing(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange);
	bool is_fresh = (flags & EXCHANGE_REUSED) && !silence_is_broken(&exchange->silence);

	tls_sent_nothing(&exchange->tls);
	if (!(flags & EXCHANGE_OPEN))
		return EXCHANGE_NOTHING;
	/* Not now, not connected yet, or a direction that the program itself has shut. */
	if (result == 0 || error == EAGAIN || error == EWOULDBLOCK || error == EINTR ||
			error == ENOTCONN || (error == EPIPE && (flags & EXCHANGE_SHUT_WRITE)))
		return is_fresh ? exchange_end(exchange, OUTCOME_UNUSED) : EXCHANGE_NOTHING;
	/* close_notify to a server that answered shortly and left: the program is closing. */
	if ((flags & EXCHANGE_TLS) && tls_has_one_ticket(&exchange->tls) &&
			tls_will_send(&exchange->tls, bytes) == TLS_NOTHING)
		return exchange_end_by_close(exchange, settings, now_ns);
	return exchange_end_by_error(exchange, settings, error, now_ns);
}

/* The first bytes on the connection. */
RARE struct exchange_step begins_to_speak(struct exchange *exchange,
		const struct settings *settings, struct bytes bytes, uint64_t now_ns)
{
	struct exchange_step step = EXCHANGE_NOTHING;
	uint32_t flags;

	if (exchange_has(exchange, EXCHANGE_PENDING))
		step = establish(exchange, settings, now_ns);
	flags = exchange_flags(exchange);
	exchange_clear(exchange, EXCHANGE_IDLED);
	exchange_set(exchange, EXCHANGE_SPOKEN | protocol_flag(bytes) |
			(exchange_flags_are_silent(flags) ? EXCHANGE_SENT : 0));
	return (struct exchange_step){
		.ended = step.ended,
		.has_spoken = exchange_flags_are_silent(flags),
	};
}

struct exchange_step exchange_sent(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, uint64_t now_ns)
{
	struct exchange_step step = EXCHANGE_NOTHING;
	uint32_t flags = exchange_flags(exchange);

	if (!exchange_flags_mind_sent(flags))
		return EXCHANGE_NOTHING;
	if (result <= 0)
		return sent_nothing(exchange, settings, bytes, result, error, now_ns);
	if (!(flags & EXCHANGE_SPOKEN)) {
		step = begins_to_speak(exchange, settings, bytes, now_ns);
		flags = exchange_flags(exchange);
	}
	if (flags & EXCHANGE_OPEN) {
		silence_break(&exchange->silence, now_ns);
		note_move(exchange, flags, now_ns);
	}
	if (flags & EXCHANGE_TLS)
		sent_tls(exchange, bytes, (size_t)result, now_ns);
	return step;
}

/* An answer, or bytes that nobody waits for any more: either way, there was one. */
static struct exchange_step answered(struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	if (!(flags & EXCHANGE_ANSWERED))
		exchange_set(exchange, flags & EXCHANGE_BLIND ?
				EXCHANGE_ANSWERED | EXCHANGE_UNMETERED : EXCHANGE_ANSWERED);
	return exchange_end(exchange, OUTCOME_SUCCESS);
}

SELDOM struct exchange_step received_tls(struct exchange *exchange, struct bytes bytes, size_t size,
		bool is_peek, uint64_t now_ns)
{
	bool is_first = !exchange_has(exchange, EXCHANGE_ANSWERED);
	enum tls_sight sight = tls_received(&exchange->tls, bytes, size, is_first, is_peek, now_ns);

	if (sight == TLS_BROKEN)
		leave_tls(exchange);
	if (sight != TLS_NOTHING)
		return answered(exchange);
	/* A program that peeks at the same ticket again and again still waits. */
	if (!is_peek && exchange_has(exchange, EXCHANGE_OPEN))
		silence_break(&exchange->silence, now_ns);
	return EXCHANGE_NOTHING;
}

static struct exchange_step received_data(struct exchange *exchange,
		const struct settings *settings, struct bytes bytes, size_t size, bool is_peek,
		uint64_t now_ns)
{
	struct exchange_step step = EXCHANGE_NOTHING;
	uint32_t flags = exchange_flags(exchange);

	if (flags & EXCHANGE_PENDING) {
		step = establish(exchange, settings, now_ns);
		flags = exchange_flags(exchange);
	}
	if (step.ended != OUTCOME_NONE || !(flags & EXCHANGE_ESTABLISHED))
		return step;
	if (flags & EXCHANGE_TLS)
		return received_tls(exchange, bytes, size, is_peek, now_ns);
	return answered(exchange);
}

/* A non-blocking recv returns at once; a blocking one no sooner than its time, give or take the
 * coarse clock. Half of it tells them apart. */
static bool has_timed_out(const struct exchange *exchange, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t timeout_ms = atomic_load_explicit(&exchange->receive_timeout_ms,
			memory_order_relaxed);

	return exchange_has(exchange, EXCHANGE_RECEIVE_TIMEOUT) && began_ns &&
		clock_elapsed_ns(began_ns, now_ns) * 2 >= timeout_ms * NS_PER_MS;
}

RARE struct exchange_step received_error(struct exchange *exchange,
		const struct settings *settings, int error, bool is_peek, uint64_t began_ns,
		uint64_t now_ns)
{
	/* Not connected yet, or not any more: how that came about shows elsewhere. */
	if (error == EINTR || error == ENOTCONN)
		return EXCHANGE_NOTHING;
	if (error != EAGAIN && error != EWOULDBLOCK)
		return exchange_end_by_error(exchange, settings, error, now_ns);
	if (!is_peek && has_timed_out(exchange, began_ns, now_ns))
		return exchange_end(exchange, OUTCOME_TIMEOUT);
	return EXCHANGE_NOTHING;
}

RARE struct exchange_step received_eof(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, uint64_t now_ns)
{
	struct exchange_step step = EXCHANGE_NOTHING;

	if (bytes_are_empty(bytes))
		return EXCHANGE_NOTHING;
	if (exchange_has(exchange, EXCHANGE_PENDING))
		step = establish(exchange, settings, now_ns);
	return step.ended != OUTCOME_NONE ? step : exchange_end_by_eof(exchange, settings, now_ns);
}

struct exchange_step exchange_received(struct exchange *exchange, const struct settings *settings,
		struct bytes bytes, ssize_t result, int error, bool is_peek, uint64_t began_ns,
		uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange) & ~EXCHANGE_CANCELLED;

	if (began_ns)
		exchange_wait_ends(exchange, began_ns, now_ns);
	/* What we made the socket say ourselves is no news of the peer. */
	if ((flags & (EXCHANGE_CUT | EXCHANGE_TIMED_OUT)) || !exchange_flags_mind_receive(flags))
		return EXCHANGE_NOTHING;
	if (result > 0)
		return received_data(exchange, settings, bytes, (size_t)result, is_peek, now_ns);
	if (!(flags & EXCHANGE_OPEN))
		return EXCHANGE_NOTHING;
	if (result < 0)
		return received_error(exchange, settings, error, is_peek, began_ns, now_ns);
	return received_eof(exchange, settings, bytes, now_ns);
}

struct exchange_step exchange_waited(struct exchange *exchange, uint64_t began_ns,
		uint64_t now_ns)
{
	exchange_wait_ends(exchange, began_ns, now_ns);
	return EXCHANGE_NOTHING;
}

struct exchange_step exchange_shutdown(struct exchange *exchange, const struct settings *settings,
		int how, uint64_t now_ns)
{
	if (how == SHUT_WR || how == SHUT_RDWR)
		exchange_set(exchange, EXCHANGE_SHUT_WRITE);
	if (how == SHUT_WR)
		return EXCHANGE_NOTHING;
	/* One that is still connecting is broken off, and may be tried again. */
	if (exchange_has(exchange, EXCHANGE_ESTABLISHED))
		exchange_set(exchange, EXCHANGE_UNMETERED);
	return exchange_end_by_close(exchange, settings, now_ns);
}

struct exchange_step exchange_closed(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns)
{
	struct exchange_step step = exchange_end_by_close(exchange, settings, now_ns);

	exchange_clear(exchange, ~(uint32_t)EXCHANGE_RECEIVE_TIMEOUT);
	return step;
}

struct exchange_step exchange_cancelled(struct exchange *exchange)
{
	struct exchange_step step = exchange_end(exchange, OUTCOME_CANCELLED);

	if (step.ended != OUTCOME_NONE)
		exchange_set(exchange, EXCHANGE_UNMETERED | EXCHANGE_CANCELLED);
	return step;
}

struct exchange_step exchange_left_to_stdio(struct exchange *exchange)
{
	uint32_t flags = exchange_flags(exchange);

	exchange_set(exchange, EXCHANGE_UNMETERED);
	/* Still connecting: establish() or close says. */
	if (!(flags & EXCHANGE_ESTABLISHED))
		return EXCHANGE_NOTHING;
	return exchange_end(exchange, flags & EXCHANGE_REUSED ? OUTCOME_UNUSED : OUTCOME_SUCCESS);
}
