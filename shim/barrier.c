/* SPDX-License-Identifier: MIT */
#include "shim/barrier.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "shim/held_attempt.h"
#include "shim/hold.h"
#include "shim/meeting.h"
#include "shim/own_call.h"
#include "shim/socket_wait.h"

/* Connecting still, as far as the program may know. */
static bool wait_for_attempt(struct crossing *crossing)
{
	struct slot *slot = crossing->sight.slot;
	uint64_t due_ns = held_attempt_ns(slot, crossing->sight.now_ns);
	int error;

	if (due_ns && !crossing->sight.is_blocking)
		return crossing_answer_again(crossing);
	if (due_ns && !crossing_sleep(crossing, due_ns))
		return false;
	crossing->sight.now_ns = clock_now_ns();
	error = held_attempt_error(slot, crossing->sight.now_ns);
	return !error || crossing_answer(crossing, -1, error);
}

static bool has_waited(struct crossing *crossing)
{
	struct slot *slot = crossing->sight.slot;
	uint64_t until_ns = atomic_load_explicit(
			crossing_is_receiving(crossing) ? &slot->in_until_ns : &slot->out_until_ns,
			memory_order_relaxed);

	return crossing->sight.is_blocking || crossing->sight.now_ns >= until_ns ||
	       own_calls_are_forbidden() || crossing_answer_again(crossing);
}

static bool meet_all(struct crossing *crossing)
{
	uint32_t count = slot_count(crossing->sight.slot);

	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &crossing->sight.slot->strikes[i];

		if ((strike_is(strike, STRIKE_ARMED) || strike_is(strike, STRIKE_ON)) &&
				!meeting_goes_on(crossing, strike))
			return false;
	}
	return true;
}

/* The answer comes late: nothing is taken before, so that nothing is lost. */
static bool wait_for_answer(struct crossing *crossing)
{
	uint64_t due_ns;
	int error;

	if (!crossing->sight.is_blocking) {
		if (!crossing_is_ready(crossing) || !arrival_answer_ns(&crossing->sight))
			return true;
		return crossing_answer_again(crossing);
	}
	error = socket_wait(crossing->sight.fd, crossing_end_ns(crossing));
	if (error)
		return crossing_answer(crossing, -1, error);
	crossing->sight.now_ns = clock_now_ns();
	due_ns = arrival_answer_ns(&crossing->sight);
	return !due_ns || crossing_sleep(crossing, due_ns);
}

bool barrier_lets(struct crossing *crossing)
{
	struct slot *slot = crossing->sight.slot;

	crossing->limit = crossing->size;
	crossing->goes_on = false;
	crossing->corrupts = NULL;
	crossing->sight.now_ns = clock_now_ns();
	if (!crossing->began_ns)
		crossing->began_ns = crossing->sight.now_ns;
	if (slot_has(slot, SLOT_RESET | SLOT_CLOSED) && !crossing_answer_dead(crossing))
		return false;
	if (slot_has(slot, SLOT_HELD) && !wait_for_attempt(crossing))
		return false;
	if (slot_has(slot, SLOT_WAITS) && !has_waited(crossing))
		return false;
	if (!meet_all(crossing))
		return false;
	return !crossing_is_receiving(crossing) ||
	       !arrival_is_watched(slot, crossing->sight.now_ns) || wait_for_answer(crossing);
}

static void all_moved(struct crossing *crossing, size_t size)
{
	uint32_t count = slot_count(crossing->sight.slot);

	if (crossing->flags & MSG_PEEK)
		return;
	if (!crossing_is_receiving(crossing) && slot_has(crossing->sight.slot, SLOT_UNSENT))
		slot_clear(crossing->sight.slot, SLOT_UNSENT);
	crossing->sight.now_ns = clock_now_ns();
	for (uint32_t i = 0; i < count; i++) {
		struct strike *strike = &crossing->sight.slot->strikes[i];

		meeting_moved(crossing, strike, size);
	}
}

/* The peer has no more to say, and the program is not to know it yet. */
static ssize_t end_late(struct crossing *crossing)
{
	uint64_t due_ns;

	crossing->sight.now_ns = clock_now_ns();
	due_ns = arrival_end_ns(&crossing->sight);
	if (!due_ns)
		return 0;
	if (!crossing->sight.is_blocking) {
		crossing_answer_again(crossing);
		return -1;
	}
	return crossing_sleep(crossing, due_ns) ? 0 : -1;
}

ssize_t barrier_passed(struct crossing *crossing, ssize_t result)
{
	struct slot *slot = crossing->sight.slot;

	if (result > 0) {
		all_moved(crossing, (size_t)result);
		/* A program that stops at a short transfer waits for an edge. */
		if (!crossing->sight.is_blocking && crossing->limit < crossing->size &&
				(size_t)result == crossing->limit && !(crossing->flags & MSG_PEEK))
			hold_again(crossing->sight.fd);
		return result;
	}
	if (!crossing_is_receiving(crossing))
		slot_set(slot, SLOT_UNSENT);
	if (result < 0 || !crossing_is_receiving(crossing) || !crossing->size)
		return result;
	/* Another thread came to the end of it, and woke this one. */
	if (slot_has(slot, SLOT_RESET)) {
		int error = crossing_dead_error(crossing);

		if (!error)
			return 0;
		errno = error;
		return -1;
	}
	return end_late(crossing);
}
