/* SPDX-License-Identifier: MIT */
#include "shim/meeting.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "shim/hold.h"
#include "shim/inject_choose.h"
#include "shim/own_call.h"
#include "shim/socket_ask.h"

/* How long nothing is ready after an EAGAIN that was not true. */
#define EAGAIN_NS 1000000ull

static bool is_about(const struct crossing *crossing, const struct fault *fault)
{
	return !fault->direction || fault->direction & crossing->direction;
}

static void suppress(struct crossing *crossing, struct strike *strike, enum fault_reason reason)
{
	inject_is_suppressed(crossing->sight.slot, strike, reason);
}

static bool is_about_data(const struct crossing *crossing, const struct fault *fault)
{
	return fault->where & (crossing_is_receiving(crossing) ? POSSIBLE_RECV : POSSIBLE_SEND);
}

static bool ends_connection(int error)
{
	return error != EAGAIN && error != EINTR && error != ENOBUFS && error != ENOMEM;
}

static bool meet_errno(struct crossing *crossing, struct strike *strike)
{
	int error = strike_fault(strike)->error;

	if (!is_about_data(crossing, strike_fault(strike)) ||
			(error == EINTR && !crossing->sight.is_blocking) ||
			(error == EAGAIN && crossing->sight.is_blocking) ||
			!inject_strikes(&crossing->sight, strike, STRIKE_DONE))
		return true;
	if (error == EAGAIN)
		return crossing_answer_again(crossing);
	if (!ends_connection(error))
		return crossing_answer(crossing, -1, error);
	crossing_end_connection(crossing, error);
	return crossing_answer_dead(crossing);
}

static bool meet_end(struct crossing *crossing, struct strike *strike)
{
	uint64_t moved = atomic_load_explicit(&strike->moved, memory_order_relaxed);
	bool is_reset = strike_fault(strike)->kind == FAULT_RESET;

	if (moved < strike_value(strike)) {
		if (strike_value(strike) - moved < crossing->limit)
			crossing->limit = (size_t)(strike_value(strike) - moved);
		return true;
	}
	if (!inject_strikes(&crossing->sight, strike, STRIKE_DONE))
		return true;
	crossing_end_connection(crossing, is_reset ? ECONNRESET : 0);
	return crossing_answer_dead(crossing);
}

/* Where what it would wait for is there already, too: it could have come a moment later, and
 * whether it has is chance. */
static bool meet_interruption(struct crossing *crossing, struct strike *strike)
{
	if (!crossing->sight.is_blocking ||
			!inject_strikes(&crossing->sight, strike, STRIKE_DONE))
		return true;
	return crossing_answer(crossing, -1, EINTR);
}

static bool meet_again(struct crossing *crossing, struct strike *strike)
{
	struct slot *slot = crossing->sight.slot;
	_Atomic uint64_t *until;

	/* What is not ready says so itself. */
	if (crossing->sight.is_blocking || !crossing_is_ready(crossing))
		return true;
	if (!hold_is_possible()) {
		suppress(crossing, strike, FAULT_BY_MODE);
		return true;
	}
	if (!inject_strikes(&crossing->sight, strike, STRIKE_DONE))
		return true;
	until = crossing_is_receiving(crossing) ? &slot->in_until_ns : &slot->out_until_ns;
	atomic_store_explicit(until, crossing->sight.now_ns + EAGAIN_NS, memory_order_relaxed);
	slot_set(slot, SLOT_WAITS);
	return crossing_answer_again(crossing);
}

static bool meet_shortness(struct crossing *crossing, struct strike *strike)
{
	size_t size = (size_t)strike_value(strike);

	if (size == 0)
		size = 1;
	if (crossing->limit <= size || crossing->flags & MSG_PEEK ||
			inject_is_over(strike, crossing->sight.now_ns))
		return true;
	if (strike_is(strike, STRIKE_ON) || inject_strikes(&crossing->sight, strike, STRIKE_ON)) {
		crossing->limit = size;
		crossing->goes_on = false;
	}
	return true;
}

static bool meet_rate(struct crossing *crossing, struct strike *strike)
{
	struct pace *pace = crossing_is_receiving(crossing) ? &strike->in : &strike->out;
	uint64_t rate = strike_value(strike), due_ns, room;

	if (!inject_may_delay(&crossing->sight)) {
		suppress(crossing, strike, FAULT_BY_MODE);
		return true;
	}
	if (!strike_is(strike, STRIKE_ON) && !inject_strikes(&crossing->sight, strike, STRIKE_ON))
		return true;
	if (inject_is_over(strike, crossing->sight.now_ns))
		return true;
	while (!(room = pace_room(pace, rate, crossing->sight.now_ns, &due_ns))) {
		if (!crossing->sight.is_blocking)
			return crossing_answer_again(crossing);
		if (!crossing_sleep(crossing, due_ns))
			return false;
		/* The connection has ended meanwhile. */
		if (crossing->sight.now_ns < due_ns)
			return true;
	}
	if (room >= crossing->limit)
		return true;
	crossing->limit = (size_t)room;
	/* A blocking call moves all that it was given. */
	crossing->goes_on = crossing_moves_all(crossing);
	return true;
}

/* The peer falls silent in mid-life. */
static bool meet_silence(struct crossing *crossing, struct strike *strike)
{
	struct slot *slot = crossing->sight.slot;
	bool is_silent;

	if (own_calls_are_forbidden()) {
		suppress(crossing, strike, FAULT_BY_MODE);
		return true;
	}
	is_silent = socket_silence(crossing->sight.fd);
	if (!is_silent && !hold_is_possible()) {
		suppress(crossing, strike, FAULT_IMPOSSIBLE);
	} else if (!inject_strikes(&crossing->sight, strike, STRIKE_DONE)) {
		if (is_silent)
			socket_listen_again(crossing->sight.fd);
	} else if (!is_silent) {
		/* Its answer comes when nobody waits any more. */
		holds_expect();
		atomic_store_explicit(&slot->answer_due_ns,
				crossing->sight.now_ns + SOCKET_SILENCE_NS, memory_order_relaxed);
		slot_set(slot, SLOT_ANSWERS);
	}
	return true;
}

static bool meet_corruption(struct crossing *crossing, struct strike *strike)
{
	/* What the kernel would turn back would never be sent. */
	if (!crossing_is_receiving(crossing) && !crossing->sight.is_blocking &&
			!own_calls_are_forbidden() && !crossing_is_ready(crossing))
		return true;
	/* What is sent without a copy must stay where it is for longer than ours does; and what is
	 * received so is thrown away. */
	if (!(crossing->flags & (MSG_PEEK | MSG_ZEROCOPY | MSG_TRUNC)) && crossing->is_in_sight &&
			!crossing->corrupts)
		crossing->corrupts = strike;
	return true;
}

bool meeting_goes_on(struct crossing *crossing, struct strike *strike)
{
	const struct fault *fault = strike_fault(strike);

	if (!is_about(crossing, fault))
		return true;
	switch (fault->kind) {
	case FAULT_HANG:
		return meet_silence(crossing, strike);
	case FAULT_RESET:
	case FAULT_CLOSE:
		return meet_end(crossing, strike);
	case FAULT_ERRNO:
		return meet_errno(crossing, strike);
	case FAULT_EINTR:
		return meet_interruption(crossing, strike);
	case FAULT_EAGAIN:
		return meet_again(crossing, strike);
	case FAULT_SHORT:
		return meet_shortness(crossing, strike);
	case FAULT_RATE:
		return meet_rate(crossing, strike);
	case FAULT_CORRUPT:
		return meet_corruption(crossing, strike);
	default:
		return true;
	}
}

void meeting_moved(struct crossing *crossing, struct strike *strike, size_t size)
{
	const struct fault *fault = strike_fault(strike);
	uint64_t all;

	if (!is_about(crossing, fault))
		return;
	if (fault->kind == FAULT_RATE && strike_is(strike, STRIKE_ON)) {
		pace_take(crossing_is_receiving(crossing) ? &strike->in : &strike->out,
				strike_value(strike), size, crossing->sight.now_ns);
		return;
	}
	if ((fault->kind != FAULT_RESET && fault->kind != FAULT_CLOSE) ||
			!strike_is(strike, STRIKE_ARMED))
		return;
	all = size + atomic_fetch_add_explicit(&strike->moved, size, memory_order_relaxed);
	/* Now, so that whoever waits for more wakes. */
	if (strike_value(strike) && all >= strike_value(strike) &&
			inject_strikes(&crossing->sight, strike, STRIKE_DONE))
		crossing_end_connection(crossing, fault->kind == FAULT_RESET ? ECONNRESET : 0);
}
