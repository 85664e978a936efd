/* SPDX-License-Identifier: MIT */
#include "shim/fallback.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "core/clock.h"
#include "shim/bound.h"
#include "shim/call.h"
#include "shim/classify.h"
#include "shim/deadline.h"
#include "shim/gate_connect.h"
#include "shim/holder.h"
#include "shim/real.h"
#include "shim/runtime.h"

union peer {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

#define NO_WAY (-2) /* the fallback was not tried */

/* Where a connect goes, and what it takes along. */
struct way {
	union peer peer;
	socklen_t length;
	struct cell *cell;
	place_t place;
	uint64_t timeout_ns;
	bool was_late; /* we broke off the attempt that failed */
};

/* What is under way there already leads to a fallback: its end is the program's to see. */
static bool is_fallback(const struct connection *connection)
{
	struct judge judge = call_judge(connection);

	return !judge.rule && judge.cell;
}

/* Has it a peer, or had one? The kernel connects no such socket, and what is known of it must stay:
 * a send there may be the program's death. Where we broke the attempt off it has none, if it still
 * is that socket. */
static bool may_go(const struct connection *connection, int fd)
{
	if (is_fallback(connection) ||
			exchange_has(&connection->exchange, EXCHANGE_ESTABLISHED | EXCHANGE_CUT))
		return false;
	return !deadline_has_passed(connection) || deadline_holds(connection, fd);
}

static enum fd_kind kind_of(int fd)
{
	const struct connection *connection = fd_table_find(fd);

	return connection ? connection->kind : fd_table_kind(fd);
}

/* 0 where the socket cannot reach it. */
static socklen_t make_peer(enum fd_kind kind, const struct fallback *fallback, union peer *ret)
{
	const uint8_t *bytes = fallback->address.bytes;

	if (kind == FD_STREAM && fallback->address.family == 4) {
		ret->v4 = (struct sockaddr_in){ .sin_family = AF_INET,
			.sin_port = htons(fallback->port) };
		memcpy(&ret->v4.sin_addr, bytes, sizeof(ret->v4.sin_addr));
		return sizeof(ret->v4);
	}
	if (kind != FD_STREAM6)
		return 0;
	ret->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
		.sin6_port = htons(fallback->port) };
	if (fallback->address.family == 6) {
		memcpy(&ret->v6.sin6_addr, bytes, sizeof(ret->v6.sin6_addr));
	} else {
		/* v4-mapped; the kernel says ENETUNREACH where the socket is for IPv6 only. */
		memset(&ret->v6.sin6_addr.s6_addr[10], 0xff, 2);
		memcpy(&ret->v6.sin6_addr.s6_addr[12], bytes, 4);
	}
	return sizeof(ret->v6);
}

/* A connection that no rule judges: it is here to hold the place. */
static struct connection *track(int fd, struct cell *cell, place_t place)
{
	struct connection *connection;

	call_end(fd_table_set(fd, kind_of(fd)));
	connection = call_track(fd, cell);
	if (!connection)
		return NULL;
	call_hold(connection, place);
	exchange_begin(&connection->exchange, clock_now_ns());
	return connection;
}

static bool take_place(const struct rule *rule, uint64_t cell_hash, place_t *ret_place)
{
	struct holder *holder = holder_ready();
	struct bulkhead bulkhead = bulkhead_of(holder, cell_hash, BULKHEAD_FALLBACK);
	uint32_t limit = rule->settings.fallback_concurrency;

	*ret_place = 0;
	if (bulkhead_take(&bulkhead, holder, limit, ret_place) != BULKHEAD_FULL)
		return true;
	return holder_reclaim(&bulkhead, clock_now_ns()) &&
	       bulkhead_take(&bulkhead, holder, limit, ret_place) != BULKHEAD_FULL;
}

/* A call that failed, not one that says nothing about the peer. */
static bool calls_for_it(const struct rule *rule, int error)
{
	enum outcome outcome = classify_errno(&rule->settings, PHASE_CONNECT, error);

	return error == rule->settings.refuse_errno || outcome == OUTCOME_FAILURE ||
	       outcome == OUTCOME_TIMEOUT;
}

static void disconnect(int fd)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	real()->connect(fd, &nobody, sizeof(nobody));
}

static int connect_really(int fd, const struct way *way)
{
	int result = real()->connect(fd, &way->peer.any, way->length);

	if (!result || errno != EISCONN || !way->was_late)
		return result;
	/* The attempt was completed in the moment in which its time was over. */
	disconnect(fd);
	return real()->connect(fd, &way->peer.any, way->length);
}

/* Interrupted, where the program's own connect would have gone on. By errno, which is kept. */
static bool goes_on(const struct bound *bound, int fd, uint64_t until_ns)
{
	uint64_t left_ns = clock_elapsed_ns(clock_now_ns(), until_ns);

	return errno == EINTR && bound_is_set(bound) && left_ns &&
	       bound_goes_on(bound, fd, left_ns);
}

/* Where it blocks the rule's time is its own as well: the timer knows nothing of it. */
static int connect_in_time(int fd, const struct way *way)
{
	uint64_t until_ns = clock_now_ns() + way->timeout_ns;
	struct bound bound = { 0 };
	int result, error;

	if (way->timeout_ns)
		bound_begin(&bound, fd, SO_SNDTIMEO, way->timeout_ns);
	do
		result = connect_really(fd, way);
	while (result && goes_on(&bound, fd, until_ns));
	error = errno;
	bound_end(&bound, fd);
	/* The second: one that was made again. */
	if (result && bound_is_set(&bound) && (error == EINPROGRESS || error == EALREADY)) {
		disconnect(fd);
		error = ETIMEDOUT;
	}
	errno = error;
	return result;
}

static int connect_to(int fd, const struct way *way)
{
	int result, error;

	if (!track(fd, way->cell, way->place))
		holder_give(way->cell, way->place);
	result = connect_in_time(fd, way);
	error = errno;
	if (result && error != EINPROGRESS && error != EINTR)
		call_end(fd_table_set(fd, kind_of(fd)));
	errno = error;
	/* For this socket, or at all: nothing has left. */
	return result && error == ENETUNREACH ? NO_WAY : result;
}

/* False: there is none, or none for this socket, or it is full. */
static bool find_way(int fd, const struct sockaddr *address, socklen_t length, int error,
		struct way *way)
{
	uint64_t cell_hash;
	const struct rule *rule = gate_judge(address, length, clock_now_ns(), &way->cell,
			&cell_hash);

	if (!rule || !rule->settings.fallback.address.family || !calls_for_it(rule, error))
		return false;
	way->timeout_ns = rule->settings.timeout_ns;
	way->length = make_peer(kind_of(fd), &rule->settings.fallback, &way->peer);
	return way->length && take_place(rule, cell_hash, &way->place);
}

int fallback_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	const struct connection *connection = fd_table_find(fd);
	struct way way = { .was_late = connection && deadline_has_passed(connection) };
	int error = errno, result;

	if (!runtime.config.has_fallback || runtime.observe || !runtime_is_judging() ||
			(connection && !may_go(connection, fd)))
		return -1;
	result = find_way(fd, address, length, error, &way) ? connect_to(fd, &way) : NO_WAY;
	if (result == NO_WAY) {
		errno = error;
		return -1;
	}
	cell_count(way.cell, CELL_TOTAL_fallback);
	return result;
}
