/* SPDX-License-Identifier: MIT */
#include "shim/hold_poll.h"

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/fd_table.h"
#include "shim/hold_wait.h"
#include "shim/inside.h"
#include "shim/scratch.h"
#include "shim/vectors.h"
#include "shim/withheld.h"

#define ON_STACK 48

#define ERRORS (POLLERR | POLLHUP)

struct question {
	struct pollfd *entries; /* the program's: only its answer is written there */
	nfds_t count;
	const sigset_t *mask;
	bool is_precise; /* ppoll */
};

/*
 * What the kernel is asked in this round; the earliest time at which something of it is let go, 0:
 * none. `asked` holds the last round's answer: errors are reported wanted or not, and of an entry
 * that had nothing else to tell they would end each round at once.
 */
static uint64_t round_ask(const struct question *question, struct pollfd *asked, uint64_t now_ns)
{
	uint64_t due_ns = 0;

	for (nfds_t i = 0; i < question->count; i++) {
		bool has_failed = asked[i].revents & ERRORS;
		struct hold_times times = withheld_ask(question->entries[i].fd, 0, now_ns);
		bool holds_in = times.in_ns > now_ns, holds_out = times.out_ns > now_ns;
		uint32_t events = (uint16_t)question->entries[i].events;

		asked[i] = question->entries[i];
		asked[i].revents = 0;
		if (!holds_in && !holds_out)
			continue;
		events &= ~halves_bits(&times, events, now_ns);
		asked[i].events = (short)events;
		if (holds_in && (has_failed || !(events & (POLLOUT | POLLWRNORM | POLLWRBAND))))
			asked[i].fd = -1;
		if (holds_in && (!due_ns || times.in_ns < due_ns))
			due_ns = times.in_ns;
		if (holds_out && (!due_ns || times.out_ns < due_ns))
			due_ns = times.out_ns;
	}
	return due_ns;
}

/* How many have something to tell. What has nothing left keeps its errors, and no more. */
static int round_count(struct pollfd *asked, nfds_t count, uint64_t now_ns)
{
	int told = 0;

	for (nfds_t i = 0; i < count; i++) {
		uint32_t events = (uint16_t)asked[i].revents, left = events;
		struct hold_times times;

		if (events && fd_table_find(asked[i].fd)) {
			times = withheld_ask(asked[i].fd, events, now_ns);
			left &= ~halves_bits(&times, events, now_ns);
		}
		if (left)
			told++;
		asked[i].revents = (short)(left ? left : events & ERRORS);
		/* So that it is not told below. */
		if (!left)
			asked[i].fd = -1;
	}
	return told;
}

static int answer(const struct question *question, const struct pollfd *asked, int told)
{
	for (nfds_t i = 0; i < question->count; i++)
		question->entries[i].revents = asked[i].fd < 0 ? 0 : asked[i].revents;
	return told;
}

static int round_wait(const struct question *question, struct pollfd *asked, uint64_t until_ns,
		uint64_t now_ns)
{
	struct timespec room;

	if (question->is_precise)
		return below()->ppoll(asked, question->count,
				hold_wait_timespec(until_ns, now_ns, &room), question->mask);
	return below()->poll(asked, question->count, hold_wait_ms(until_ns, now_ns));
}

static int waited(const struct question *question, struct pollfd *asked, uint64_t duration_ns)
{
	uint64_t now_ns = clock_now_ns(), end_ns = hold_wait_end_ns(now_ns, duration_ns);

	for (nfds_t i = 0; i < question->count; i++)
		asked[i].revents = 0;
	for (;;) {
		uint64_t due_ns = round_ask(question, asked, now_ns);
		uint64_t until_ns = hold_wait_until_ns(due_ns, end_ns, now_ns);
		int count = round_wait(question, asked, until_ns, now_ns);

		if (count < 0)
			return count;
		now_ns = clock_now_ns();
		if (count)
			count = round_count(asked, question->count, now_ns);
		if (count || now_ns >= end_ns)
			return answer(question, asked, count);
	}
}

__attribute__((noinline)) static int waited_on_stack(const struct question *question,
		uint64_t duration_ns)
{
	struct pollfd asked[ON_STACK];

	return waited(question, asked, duration_ns);
}

static int waited_aside(const struct question *question, uint64_t duration_ns,
		bool *ret_is_possible)
{
	struct scratch scratch;
	struct pollfd *asked = scratch_take(&scratch, question->count * sizeof(*asked));
	int result;

	*ret_is_possible = asked;
	if (!asked)
		return -1;
	result = waited(question, asked, duration_ns);
	scratch_give(&scratch);
	return result;
}

/* Is there anything to be held, in the wait or by whom it delays? More than the kernel takes is for
 * it to refuse. */
static bool concerns(const struct pollfd *entries, nfds_t count)
{
	if (!holds_are_expected() || process_is_vfork_child() || count > fd_table.size ||
			(count && !pointer_may_be_read(entries)))
		return false;
	if (holds_exist())
		return true;
	for (nfds_t i = 0; i < count; i++) {
		if (fd_table_find(entries[i].fd))
			return true;
	}
	return false;
}

/* False: without memory. */
static bool held(const struct question *question, uint64_t duration_ns, int *ret_result)
{
	bool is_possible = true;

	if (question->count <= ON_STACK)
		*ret_result = waited_on_stack(question, duration_ns);
	else
		*ret_result = waited_aside(question, duration_ns, &is_possible);
	return is_possible;
}

int hold_poll(struct pollfd *entries, nfds_t count, int timeout)
{
	struct question question = { entries, count, NULL, false };
	int result;

	if (concerns(entries, count) && held(&question, hold_wait_of_ms(timeout), &result))
		return result;
	return below()->poll(entries, count, timeout);
}

int hold_ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask)
{
	struct question question = { entries, count, mask, true };
	uint64_t duration_ns;
	int result;

	if (concerns(entries, count) && (!timeout || pointer_may_be_read(timeout)) &&
			hold_wait_of_timespec(timeout, &duration_ns) &&
			held(&question, duration_ns, &result))
		return result;
	return below()->ppoll(entries, count, timeout, mask);
}

/* What does not fit ends the program, there. */
int hold_poll_chk(struct pollfd *entries, nfds_t count, int timeout, size_t room)
{
	if (room / sizeof(*entries) < count)
		return below()->__poll_chk(entries, count, timeout, room);
	return hold_poll(entries, count, timeout);
}

int hold_ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t room)
{
	if (room / sizeof(*entries) < count)
		return below()->__ppoll_chk(entries, count, timeout, mask, room);
	return hold_ppoll(entries, count, timeout, mask);
}
