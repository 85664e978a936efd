/* SPDX-License-Identifier: MIT */
#include "shim/exchange_state.h"

#include <sys/single_threaded.h>

#include "shim/verdict.h"

#define NS_PER_MS 1000000ull

static_assert(EXCHANGE_OPEN + EXCHANGE_PENDING + EXCHANGE_ESTABLISHED + EXCHANGE_SENT +
		EXCHANGE_ANSWERED + EXCHANGE_TLS + EXCHANGE_UNMETERED + EXCHANGE_CUT +
		EXCHANGE_SHUT_WRITE + EXCHANGE_REUSED + EXCHANGE_RECEIVE_TIMEOUT +
		EXCHANGE_DEADLINE + EXCHANGE_TIMED_OUT + EXCHANGE_SPOKEN + EXCHANGE_BLIND +
		EXCHANGE_IDLED + EXCHANGE_FAREWELL + EXCHANGE_EXPIRING +
		EXCHANGE_CANCELLED == (1 << 19) - 1, "a bit for each");

/* The bit that decides who ends a call. acq_rel: who ends it sees the times that were written
 * before it was opened. */
static bool open_bit_set(struct exchange *exchange)
{
	return atomic_fetch_or_explicit(&exchange->flags, EXCHANGE_OPEN, memory_order_acq_rel) &
			EXCHANGE_OPEN;
}

static bool open_bit_clear(struct exchange *exchange)
{
	uint32_t ended = EXCHANGE_OPEN | EXCHANGE_EXPIRING;

	return atomic_fetch_and_explicit(&exchange->flags, ~ended, memory_order_acq_rel) &
			EXCHANGE_OPEN;
}

/* Where a process has one thread, a plain instruction is as good as a locked one: no signal handler
 * comes in the middle of it. (Two locked ones were a tenth of what a whole exchange costs.) */
#if defined(__x86_64__)
static bool open_bit_set_alone(struct exchange *exchange)
{
	bool was_set;

	static_assert(EXCHANGE_OPEN == 1 << 0, "bit 0 below");
	__asm__ volatile("btsl $0, %0" : "+m"(exchange->flags), "=@ccc"(was_set) : : "memory");
	return was_set;
}

static bool open_bit_clear_alone(struct exchange *exchange)
{
	bool was_set;

	__asm__ volatile("btrl $0, %0" : "+m"(exchange->flags), "=@ccc"(was_set) : : "memory");
	return was_set;
}

static bool is_alone(void)
{
	return __libc_single_threaded;
}
#else
#define is_alone() false
#define open_bit_set_alone open_bit_set
#define open_bit_clear_alone open_bit_clear
#endif

bool exchange_open(struct exchange *exchange)
{
	return !(is_alone() ? open_bit_set_alone(exchange) : open_bit_set(exchange));
}

struct exchange_step exchange_end(struct exchange *exchange, enum outcome outcome)
{
	bool was_open = is_alone() ? open_bit_clear_alone(exchange) : open_bit_clear(exchange);

	if (exchange_has(exchange, EXCHANGE_PENDING | EXCHANGE_SENT))
		exchange_clear(exchange, EXCHANGE_PENDING | EXCHANGE_SENT);
	return was_open ? (struct exchange_step){ .ended = outcome } : EXCHANGE_NOTHING;
}

/* What is known of the open call. */
static struct verdict verdict(const struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns)
{
	uint32_t flags = exchange_flags(exchange);
	bool was_silent = exchange_flags_are_silent(flags);
	uint64_t waited_ns = was_silent ? silence_greeting_ns(&exchange->silence, now_ns) :
		silence_longest_ns(&exchange->silence, now_ns);

	return (struct verdict){
		.is_pending = flags & EXCHANGE_PENDING,
		.is_silent = was_silent,
		.is_reused = flags & EXCHANGE_REUSED,
		.has_waited = waited_ns >= settings->abandon_ns,
		.has_shut_write = flags & EXCHANGE_SHUT_WRITE,
		.has_said_farewell = flags & EXCHANGE_FAREWELL,
		.may_be_answered = (flags & (EXCHANGE_TLS | EXCHANGE_ANSWERED)) == EXCHANGE_TLS &&
			tls_has_one_ticket(&exchange->tls),
	};
}

bool exchange_has_waited(const struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns)
{
	return verdict(exchange, settings, now_ns).has_waited;
}

struct exchange_step exchange_end_by_error(struct exchange *exchange,
		const struct settings *settings, int error, uint64_t now_ns)
{
	return exchange_end(exchange, verdict_error(verdict(exchange, settings, now_ns), settings,
			error));
}

struct exchange_step exchange_end_by_eof(struct exchange *exchange, const struct settings *settings,
		uint64_t now_ns)
{
	return exchange_end(exchange, verdict_eof(verdict(exchange, settings, now_ns)));
}

struct exchange_step exchange_end_by_close(struct exchange *exchange,
		const struct settings *settings, uint64_t now_ns)
{
	return exchange_end(exchange, verdict_closed(verdict(exchange, settings, now_ns)));
}

void exchange_set_receive_timeout(struct exchange *exchange, uint64_t timeout_ns)
{
	uint64_t timeout_ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);

	atomic_store_explicit(&exchange->receive_timeout_ms,
			timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX,
			memory_order_relaxed);
	if (timeout_ns)
		exchange_set(exchange, EXCHANGE_RECEIVE_TIMEOUT);
	else
		exchange_clear(exchange, EXCHANGE_RECEIVE_TIMEOUT);
}
