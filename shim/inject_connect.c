/* SPDX-License-Identifier: MIT */
#include "shim/inject_connect.h"

#include <errno.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/call.h"
#include "shim/endpoint.h"
#include "shim/held_attempt.h"
#include "shim/hold.h"
#include "shim/inject_choose.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/socket_ask.h"

struct attempt {
	int fd;
	const struct sockaddr *address;
	socklen_t length;
	struct connection *connection;
	struct slot *slot;
	uint64_t now_ns;
	uint64_t delay_ns;
	int error; /* it fails with this, and is not made; 0: it is made */
	bool is_blocking;
};

static int connect_really(const struct attempt *attempt)
{
	return below()->connect(attempt->fd, attempt->address, attempt->length);
}

/* Ends with `error` (0: established) when it is due; a blocking connect is here until then, or as
 * long as its own time allows. */
static int come_late(const struct attempt *attempt, int error)
{
	uint64_t due_ns = attempt->now_ns + attempt->delay_ns, until_ns = due_ns, own_ns;
	uint32_t generation = fd_table_generation(attempt->connection);
	bool sleeps_on_socket = !error && !attempt->error;

	held_attempt_begin(attempt->slot, due_ns, error);
	if (!attempt->is_blocking) {
		errno = EINPROGRESS;
		return -1;
	}
	own_ns = socket_timeout_ns(attempt->fd, SO_SNDTIMEO);
	if (own_ns && attempt->now_ns + own_ns < due_ns)
		until_ns = attempt->now_ns + own_ns;
	if (!(sleeps_on_socket ? held_sleep(attempt->connection, attempt->fd, until_ns)
			       : socket_sleep(-1, until_ns))) {
		errno = EINTR;
		return -1;
	}
	if (until_ns < due_ns) {
		errno = EINPROGRESS;
		return -1;
	}
	/* Closed meanwhile, it may be another's. */
	if (fd_table_generation(attempt->connection) == generation)
		held_attempt_end(attempt->slot);
	errno = error;
	return error ? -1 : 0;
}

/* Of a real failure as well: it comes as late. It is held before it is made, for whoever waits
 * already is told from inside the real connect(). */
static int connect_late(const struct attempt *attempt)
{
	int kept = errno, result, error;

	if (attempt->error)
		return come_late(attempt, attempt->error);
	held_attempt_begin(attempt->slot, attempt->now_ns + attempt->delay_ns, 0);
	result = connect_really(attempt);
	error = result ? errno : 0;
	if (error == EINTR || error == EINPROGRESS || error == EALREADY)
		return result;
	if (error == EAGAIN || error == EADDRNOTAVAIL || error == EBADF || error == EISCONN) {
		held_attempt_end(attempt->slot);
		return result;
	}
	if (!error)
		slot_set(attempt->slot, SLOT_MADE);
	result = come_late(attempt, error);
	if (!result)
		errno = kept;
	return result;
}

/* Of kinds that only the first of can be had. */
static int error_of(const struct strike *strike)
{
	const struct fault *fault = strike_fault(strike);
	uint32_t rule = atomic_load_explicit(&strike->rule, memory_order_relaxed);
	uint32_t number = atomic_load_explicit(&strike->connection, memory_order_relaxed);

	switch (fault->kind) {
	case FAULT_REFUSE:
		return ECONNREFUSED;
	case FAULT_UNREACHABLE:
		return EHOSTUNREACH;
	case FAULT_TIMEOUT:
		return ETIMEDOUT;
	case FAULT_ERRNO:
		return fault->where & POSSIBLE_CONNECT ? fault->error : 0;
	case FAULT_MAXCONN:
		return slots_of_rule(rule, number) >= fault->low ? ECONNREFUSED : 0;
	default:
		return 0;
	}
}

static bool may_delay(const struct attempt *attempt)
{
	if (atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed))
		return false;
	return attempt->is_blocking || hold_is_possible();
}

static void strike_delay(struct attempt *attempt, struct strike *strike)
{
	if (!may_delay(attempt))
		inject_is_suppressed(attempt->slot, strike, FAULT_BY_MODE);
	else if (inject_strikes(attempt->slot, strike, STRIKE_DONE, attempt->connection,
				 attempt->now_ns))
		attempt->delay_ns += strike_value(strike);
}

static void strike_error(struct attempt *attempt, struct strike *strike)
{
	int error = error_of(strike);
	uint64_t delay_ns = strike_fault(strike)->kind == FAULT_TIMEOUT ?
			strike_value(strike) : 0;

	if (!error && strike_fault(strike)->kind == FAULT_MAXCONN)
		inject_is_suppressed(attempt->slot, strike, FAULT_BY_NUMBER);
	if (!error || attempt->error)
		return;
	if (delay_ns && !may_delay(attempt)) {
		inject_is_suppressed(attempt->slot, strike, FAULT_BY_MODE);
		return;
	}
	if (!inject_strikes(attempt->slot, strike, STRIKE_DONE, attempt->connection,
			    attempt->now_ns))
		return;
	attempt->error = error;
	attempt->delay_ns += delay_ns;
}

/* The kernel itself says nothing from now on, however the program waits. Where it will not be made
 * to, the attempt comes when nobody waits any more. */
static void strike_silence(struct attempt *attempt, struct strike *strike)
{
	bool is_silent;

	if (strike_fault(strike)->per != FAULT_PER_CONNECTION || attempt->error)
		return;
	if (atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed))
		return inject_is_suppressed(attempt->slot, strike, FAULT_BY_MODE);
	is_silent = socket_silence(attempt->fd);
	if (!is_silent && !may_delay(attempt))
		return inject_is_suppressed(attempt->slot, strike, FAULT_IMPOSSIBLE);
	if (!inject_strikes(attempt->slot, strike, STRIKE_DONE, attempt->connection,
			    attempt->now_ns)) {
		if (is_silent)
			socket_listen_again(attempt->fd);
	} else if (!is_silent) {
		holds_expect();
		attempt->delay_ns += SOCKET_SILENCE_NS;
	}
}

/* All delays add up; of what fails it the first. */
static void strike_attempt(struct attempt *attempt)
{
	uint32_t count = slot_count(attempt->slot);

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &attempt->slot->strikes[i];

		if (!strike_is(strike, STRIKE_ARMED))
			continue;
		if (strike_fault(strike)->kind == FAULT_LATENCY)
			strike_delay(attempt, strike);
		else
			strike_error(attempt, strike);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &attempt->slot->strikes[i];

		if (strike_is(strike, STRIKE_ARMED) && strike_fault(strike)->kind == FAULT_HANG)
			strike_silence(attempt, strike);
	}
	inject_attempt_ended(attempt->slot);
}

/* Only then it matters whether the program waits. */
static bool may_be_late(const struct slot *slot)
{
	return slot_has_kind(slot, FAULT_LATENCY) || slot_has_kind(slot, FAULT_TIMEOUT) ||
	       slot_has_kind(slot, FAULT_HANG);
}

static int connect_under_faults(struct attempt *attempt)
{
	attempt->is_blocking = may_be_late(attempt->slot) && socket_is_blocking(attempt->fd);
	strike_attempt(attempt);
	if (attempt->delay_ns)
		return connect_late(attempt);
	if (!attempt->error)
		return connect_really(attempt);
	errno = attempt->error;
	return -1;
}

/* A connection that no breaker judges: it is here to be told from others. */
static struct connection *track(int fd, uint64_t now_ns)
{
	struct connection *connection = call_track(fd, NULL);

	if (connection)
		exchange_begin(&connection->exchange, now_ns);
	return connection;
}

/* What gate_connected() does for those that it knows. */
static int tracked(struct connection *connection, uint32_t generation, int result)
{
	int error = result ? errno : 0;
	uint64_t now_ns = clock_now_ns();

	if (fd_table_generation(connection) == generation)
		call_settle(connection,
				exchange_connected(&connection->exchange,
						call_settings(connection), error, now_ns),
				now_ns);
	if (result)
		errno = error;
	return result;
}

/* The kernel refuses an address of the other family, and shall say so itself. */
static bool is_of_family(enum fd_kind kind, const struct sockaddr *address, socklen_t length)
{
	struct address peer;
	uint16_t port;

	return endpoint_read(address, length, &peer, &port) &&
	       kind == (endpoint_family(address) == AF_INET6 ? FD_STREAM6 : FD_STREAM);
}

/* Begins an attempt. False: no rule has anything to do with it. */
static bool attempt_begins(struct attempt *attempt)
{
	uint32_t rules[SLOT_STRIKES], count;

	count = fault_rules_match_peer(attempt->address, attempt->length, FAULT_TCP,
			attempt->now_ns, rules, SLOT_STRIKES);
	if (!count && !attempt->connection)
		return false;
	if (!attempt->connection)
		attempt->connection = track(attempt->fd, attempt->now_ns);
	if (!attempt->connection)
		return false;
	attempt->slot = slot_of(attempt->connection);
	inject_attempt_begins(attempt->slot, attempt->connection, rules, count, attempt->now_ns);
	return count;
}

static int connect_anew(struct attempt *attempt)
{
	bool is_ours = !attempt->connection;
	uint32_t generation;
	int result;

	if (!attempt_begins(attempt))
		return connect_really(attempt);
	if (!is_ours)
		return connect_under_faults(attempt);
	generation = fd_table_generation(attempt->connection);
	result = connect_under_faults(attempt);
	return tracked(attempt->connection, generation, result);
}

/* 0 when it is due; or what connect() answers before. */
static int wait_again(const struct attempt *attempt, uint64_t due_ns)
{
	uint64_t own_ns;

	if (!socket_is_blocking(attempt->fd))
		return EALREADY;
	own_ns = socket_timeout_ns(attempt->fd, SO_SNDTIMEO);
	if (!own_ns || attempt->now_ns + own_ns > due_ns)
		own_ns = due_ns - attempt->now_ns;
	if (!held_sleep(attempt->connection, attempt->fd, attempt->now_ns + own_ns))
		return EINTR;
	return attempt->now_ns + own_ns < due_ns ? EALREADY : 0;
}

/* A further connect() of an attempt that is under way. */
static int connect_again(const struct attempt *attempt)
{
	struct slot *slot = attempt->slot;
	uint64_t due_ns = held_attempt_ns(slot, attempt->now_ns);
	int error = due_ns ? wait_again(attempt, due_ns) : 0;

	if (!error)
		error = held_attempt_error(slot, clock_now_ns());
	if (!error)
		return held_attempt_was_made(slot) ? 0 : connect_really(attempt);
	errno = error;
	return -1;
}

static bool is_pending(const struct connection *connection)
{
	return exchange_has(&connection->exchange, EXCHANGE_PENDING);
}

/* The exchange has begun a new attempt since the slot was filled. */
static bool is_new(const struct slot *slot, const struct connection *connection)
{
	return !slot_is_valid(slot, connection) ||
	       atomic_load_explicit(&slot->attempt_ns, memory_order_relaxed) !=
			atomic_load_explicit(&connection->exchange.began_ns, memory_order_relaxed);
}

int inject_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	struct attempt attempt = { .fd = fd, .address = address, .length = length };
	enum fd_kind kind;

	if (!runtime_is_judging() || inside_is(__builtin_frame_address(0)) ||
			endpoint_is_disconnect(address, length))
		return connect_really(&attempt);
	attempt.now_ns = clock_now_ns();
	if (fault_rules_have_changed())
		fault_rules_refresh(attempt.now_ns);
	attempt.connection = fd_table_find(fd);
	kind = attempt.connection ? attempt.connection->kind : fd_table_kind(fd);
	if (!is_of_family(kind, address, length))
		return connect_really(&attempt);
	if (!attempt.connection)
		return connect_anew(&attempt);
	attempt.slot = slot_of(attempt.connection);
	if (!is_pending(attempt.connection))
		return connect_really(&attempt);
	if (is_new(attempt.slot, attempt.connection))
		return connect_anew(&attempt);
	return connect_again(&attempt);
}

bool inject_fast_open(int fd, const struct sockaddr *address, socklen_t length)
{
	struct attempt attempt = { .fd = fd, .address = address, .length = length };
	struct connection *connection = fd_table_find(fd);
	enum fd_kind kind = connection ? connection->kind : fd_table_kind(fd);
	bool is_ours = !connection;

	if (!runtime_is_judging() || !is_of_family(kind, address, length) ||
			(connection && (!is_pending(connection) ||
						!is_new(slot_of(connection), connection))))
		return true;
	attempt.now_ns = clock_now_ns();
	attempt.connection = connection;
	if (!attempt_begins(&attempt))
		return true;
	/* No delay: what goes with the SYN cannot be told from what goes later. */
	attempt.is_blocking = false;
	for (uint32_t i = 0; i < slot_count(attempt.slot); i++) {
		struct strike *strike = &attempt.slot->strikes[i];

		if (strike_is(strike, STRIKE_ARMED) && strike_fault(strike)->kind != FAULT_LATENCY)
			strike_error(&attempt, strike);
	}
	inject_attempt_ended(attempt.slot);
	if (!attempt.error)
		return true;
	errno = attempt.error;
	if (is_ours)
		tracked(attempt.connection, fd_table_generation(attempt.connection), -1);
	return false;
}
