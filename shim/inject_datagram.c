/* SPDX-License-Identifier: MIT */
#include "shim/inject_datagram.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/call.h"
#include "shim/hold.h"
#include "shim/inject_slot.h"
#include "shim/inject_unit.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"
#include "shim/socket_wait.h"
#include "shim/vectors.h"

enum datagram {
	DATAGRAM_PASSES,
	DATAGRAM_LOST,
	DATAGRAM_TWICE,
	DATAGRAM_FAILS
};

/* What becomes of one datagram. */
struct fate {
	enum datagram datagram;
	int error;         /* of FAILS */
	uint64_t delay_ns;
};

bool datagram_concerns(int fd)
{
	struct connection *connection = fd_table_find(fd);
	enum fd_kind kind = connection ? connection->kind : fd_table_kind(fd);

	return kind == FD_DATAGRAM && fault_rules_have_datagrams(clock_coarse_ns()) &&
	       !process_is_vfork_child();
}

/* The connection that stands for the socket, made with its first datagram under a rule. */
static struct connection *track(int fd)
{
	struct connection *connection = fd_table_find(fd);

	if (connection)
		return connection;
	connection = call_track(fd, NULL);
	if (!connection)
		return NULL;
	exchange_set(&connection->exchange, EXCHANGE_UNMETERED);
	slot_begin(slot_of(connection), connection, 1);
	socket_datagram_age_ns(fd);
	return connection;
}

/* The socket's number under the rule, and the place where its datagrams are counted. */
static struct strike *strike_of(struct slot *slot, uint32_t rule, uint64_t now_ns)
{
	uint32_t count = slot_count(slot);
	struct strike *strike;

	for (uint32_t i = 0; i < count; i++) {
		strike = &slot->strikes[i];
		if (atomic_load_explicit(&strike->rule, memory_order_relaxed) == rule)
			return strike;
	}
	strike = slot_room(slot);
	if (!strike)
		return NULL;
	atomic_store_explicit(&strike->rule, rule, memory_order_relaxed);
	atomic_store_explicit(&strike->connection,
			fault_rule_connection(fault_rule_at(rule), now_ns), memory_order_relaxed);
	slot_add(slot, strike);
	return strike;
}

static enum datagram datagram_of(enum fault_kind kind)
{
	switch (kind) {
	case FAULT_DROP:
		return DATAGRAM_LOST;
	case FAULT_DUP:
		return DATAGRAM_TWICE;
	case FAULT_ERRNO:
		return DATAGRAM_FAILS;
	default:
		return DATAGRAM_PASSES;
	}
}

static void strike(struct fate *fate, const struct inject_unit *unit, uint64_t now_ns)
{
	const struct fault *fault = &unit->rule->fault;
	enum datagram datagram = datagram_of(fault->kind);
	struct fault_choice choice = inject_unit_choose(unit, now_ns);

	if (choice.reason != FAULT_STRIKES)
		return;
	if (fault->kind == FAULT_LATENCY) {
		if (own_calls_are_forbidden())
			fault_record_suppressed(fault_rule_record(unit->rule), FAULT_BY_MODE);
		else if (inject_unit_strikes(unit, choice.value, now_ns))
			fate->delay_ns += choice.value;
		return;
	}
	if (datagram == DATAGRAM_PASSES || fate->datagram != DATAGRAM_PASSES) {
		fault_record_suppressed(fault_rule_record(unit->rule), FAULT_IMPOSSIBLE);
		return;
	}
	if (!inject_unit_strikes(unit, choice.value, now_ns))
		return;
	fate->datagram = datagram;
	fate->error = fault->error;
}

static bool is_about(const struct fault *fault, enum fault_direction direction)
{
	unsigned int where = direction == FAULT_IN ? POSSIBLE_RECV : POSSIBLE_SEND;

	return fault->where & where && (!fault->direction || fault->direction & direction);
}

/* Every datagram to or from an endpoint of a rule is a call of it. */
static struct fate judge(int fd, const struct sockaddr *address, socklen_t length,
		enum fault_direction direction)
{
	struct fate fate = { .datagram = DATAGRAM_PASSES };
	struct connection *connection;
	uint32_t rules[FAULT_TOGETHER_MAX], count;
	uint64_t now_ns = clock_now_ns();

	count = fault_rules_match_peer(address, length, FAULT_UDP, now_ns, rules,
			FAULT_TOGETHER_MAX);
	connection = count ? track(fd) : NULL;
	for (uint32_t i = 0; connection && i < count; i++) {
		struct strike *number = strike_of(slot_of(connection), rules[i], now_ns);
		struct inject_unit unit = { .rule = fault_rule_at(rules[i]) };

		if (!number || !is_about(&unit.rule->fault, direction))
			continue;
		unit.unit.connection = atomic_load_explicit(
				&number->connection, memory_order_relaxed);
		unit.unit.call = 1 + (uint32_t)atomic_fetch_add_explicit(
				&number->moved, 1, memory_order_relaxed);
		strike(&fate, &unit, now_ns);
	}
	return fate;
}

static enum datagram sends(int fd, const struct msghdr *message)
{
	const struct sockaddr *address = message->msg_name;
	socklen_t length = message->msg_namelen;
	struct sockaddr_storage peer;
	int error = errno;
	struct fate fate;

	if (!address) {
		length = socket_peer(fd, &peer);
		address = (const struct sockaddr *)&peer;
	}
	fate = judge(fd, address, length, FAULT_OUT);
	errno = fate.datagram == DATAGRAM_FAILS ? fate.error : error;
	return fate.datagram;
}

ssize_t datagram_send(int fd, const struct msghdr *message, int flags)
{
	switch (sends(fd, message)) {
	case DATAGRAM_FAILS:
		return -1;
	case DATAGRAM_LOST:
		return (ssize_t)vectors_size(message->msg_iov, message->msg_iovlen);
	case DATAGRAM_TWICE:
		below()->sendmsg(fd, message, flags);
		break;
	default:
		break;
	}
	return below()->sendmsg(fd, message, flags);
}

int datagram_send_many(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int done = 0;

	while (done < count) {
		ssize_t size = datagram_send(fd, &messages[done].msg_hdr, flags);

		if (size < 0)
			break;
		messages[done++].msg_len = (unsigned int)size;
	}
	return done ? (int)done : -1;
}

/* Of the datagram that is next; length 0: there is none, or its sender is not told. */
static socklen_t sender_of_next(int fd, struct sockaddr_storage *ret)
{
	socklen_t length = sizeof(*ret);
	int error = errno;
	ssize_t result = below()->recvfrom(
			fd, NULL, 0, MSG_PEEK | MSG_DONTWAIT, (struct sockaddr *)ret, &length);

	errno = error;
	return result < 0 ? 0 : length;
}

/* What is to become of the next one is decided once, and kept. */
static void fate_keep(struct slot *slot, const struct fate *fate, uint64_t now_ns)
{
	atomic_store_explicit(&slot->error, (int)fate->datagram, memory_order_relaxed);
	atomic_store_explicit(&slot->attempt_error, fate->error, memory_order_relaxed);
	atomic_store_explicit(&slot->answer_due_ns, fate->delay_ns ? now_ns + fate->delay_ns : 0,
			memory_order_relaxed);
	slot_set(slot, SLOT_JUDGED);
}

static struct fate fate_kept(const struct slot *slot)
{
	return (struct fate){
		.datagram = (enum datagram)atomic_load_explicit(
				&slot->error, memory_order_relaxed),
		.error = atomic_load_explicit(&slot->attempt_error, memory_order_relaxed),
	};
}

static struct slot *slot_of_socket(int fd)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot = connection ? slot_of(connection) : NULL;

	return slot && slot_is_valid(slot, connection) ? slot : NULL;
}

/* Its time began when it came, be it that others were held before it. */
static uint64_t arrived_ns(int fd, const struct fate *fate, uint64_t now_ns)
{
	uint64_t age_ns = fate->delay_ns ? socket_datagram_age_ns(fd) : 0;

	return age_ns < now_ns ? now_ns - age_ns : now_ns;
}

/* There is one: until when is it held? 0: not at all. */
static uint64_t judge_next(int fd, uint64_t now_ns, struct fate *ret_fate)
{
	struct slot *slot = slot_of_socket(fd);
	struct sockaddr_storage sender;
	uint64_t due_ns;
	socklen_t length;

	if (!slot || !slot_has(slot, SLOT_JUDGED)) {
		length = sender_of_next(fd, &sender);
		*ret_fate = judge(fd, (const struct sockaddr *)&sender, length, FAULT_IN);
		slot = slot_of_socket(fd);
		if (!slot)
			return 0;
		fate_keep(slot, ret_fate, arrived_ns(fd, ret_fate, now_ns));
	}
	*ret_fate = fate_kept(slot);
	due_ns = atomic_load_explicit(&slot->answer_due_ns, memory_order_relaxed);
	return due_ns > now_ns ? due_ns : 0;
}

/* It is gone, or is to come a second time, as it is. */
static void end_next(int fd, enum datagram datagram, uint64_t now_ns)
{
	static const struct fate passes = { .datagram = DATAGRAM_PASSES };
	struct slot *slot = slot_of_socket(fd);
	int error = errno;

	if (datagram == DATAGRAM_LOST)
		below()->recv(fd, NULL, 0, MSG_DONTWAIT);
	errno = error;
	if (slot && datagram == DATAGRAM_TWICE)
		fate_keep(slot, &passes, now_ns);
	else if (slot)
		slot_clear(slot, SLOT_JUDGED);
}

static enum datagram fail(int error)
{
	errno = error;
	return DATAGRAM_FAILS;
}

/* Late for whoever waits by poll, and for whoever waits here. False: answered, errno is set. */
static bool wait_until(int fd, bool is_blocking, uint64_t due_ns, uint64_t end_ns)
{
	bool is_too_late = end_ns && end_ns < due_ns;

	if (!is_blocking)
		hold_again(fd);
	else if (!socket_sleep(-1, is_too_late ? end_ns : due_ns))
		return fail(EINTR) != DATAGRAM_FAILS;
	return (is_blocking && !is_too_late) || fail(EAGAIN) != DATAGRAM_FAILS;
}

static enum datagram receives(int fd, int flags)
{
	bool is_blocking = !(flags & MSG_DONTWAIT) && socket_is_blocking(fd);
	uint64_t own_ns = is_blocking ? socket_timeout_ns(fd, SO_RCVTIMEO) : 0, now_ns, due_ns;
	uint64_t end_ns = own_ns ? clock_now_ns() + own_ns : 0;
	struct fate fate;

	for (;;) {
		int error = is_blocking ? socket_wait(fd, end_ns) : 0;

		if (error)
			return fail(error);
		if (!socket_readiness(fd, POLLIN))
			return DATAGRAM_PASSES;
		now_ns = clock_now_ns();
		due_ns = judge_next(fd, now_ns, &fate);
		if (due_ns && !wait_until(fd, is_blocking, due_ns, end_ns))
			return DATAGRAM_FAILS;
		end_next(fd, fate.datagram, now_ns);
		if (fate.datagram == DATAGRAM_FAILS)
			return fail(fate.error);
		if (fate.datagram != DATAGRAM_LOST)
			return fate.datagram;
	}
}

ssize_t datagram_receive(int fd, struct msghdr *message, int flags)
{
	enum datagram datagram = DATAGRAM_PASSES;

	if (!(flags & (MSG_ERRQUEUE | MSG_PEEK)))
		datagram = receives(fd, flags);
	if (datagram == DATAGRAM_FAILS)
		return -1;
	/* That it stays in the queue makes two of it. */
	return below()->recvmsg(fd, message, datagram == DATAGRAM_TWICE ? flags | MSG_PEEK : flags);
}

/* As the kernel does, which looks at the time after each. */
int datagram_receive_many(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout)
{
	uint64_t end_ns = timeout ? clock_now_ns() + (uint64_t)timeout->tv_sec * CLOCK_SECOND_NS +
			(uint64_t)timeout->tv_nsec : 0, rest_ns = 1;
	unsigned int done = 0;

	while (done < count && rest_ns) {
		ssize_t size = datagram_receive(fd, &messages[done].msg_hdr,
				flags & ~MSG_WAITFORONE);

		if (size < 0)
			break;
		messages[done++].msg_len = (unsigned int)size;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (timeout)
			rest_ns = clock_elapsed_ns(clock_now_ns(), end_ns);
	}
	if (timeout && done)
		*timeout = clock_timespec(rest_ns);
	return done ? (int)done : -1;
}

struct hold_times datagram_hold(int fd, uint32_t events, uint64_t now_ns)
{
	struct hold_times times = { 0, 0 };
	struct slot *slot = slot_of_socket(fd);
	struct fate fate;

	if (slot && (events & EPOLLIN || slot_has(slot, SLOT_JUDGED)))
		times.in_ns = judge_next(fd, now_ns, &fate);
	return times;
}
