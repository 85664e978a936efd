/* SPDX-License-Identifier: MIT */
#include "shim/hold_epoll.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/epoll_set.h"
#include "shim/fd_table.h"
#include "shim/hold_wait.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/registration.h"
#include "shim/vectors.h"
#include "shim/withheld.h"

/* The kernel's answer, with what is to be found when it reports something at once recorded before.
 */
static int control_recorded(int set, int operation, int fd, struct epoll_event *event)
{
	int name = registrations_name(set);
	struct registration *before = registration_find(name, fd), *registration = before;
	uint32_t events = before ? before->events : 0;
	uint64_t data = before ? before->data : 0;
	int result;

	if (operation == EPOLL_CTL_ADD || operation == EPOLL_CTL_MOD) {
		registration = registration_claim(name, fd);
		if (registration)
			registration_fill(registration, event->events, event->data.u64);
	}
	result = below()->epoll_ctl(set, operation, fd, event);
	if (!registration)
		return result;
	if (result && before)
		registration_fill(registration, events, data);
	else if (result || operation == EPOLL_CTL_DEL)
		registration_free(registration);
	else
		withheld_returned(registration);
	return result;
}

static int control_locked(int set, int operation, int fd, struct epoll_event *event)
{
	int result;

	if (!withheld_answers(registrations_name(set), operation, fd, event, &result))
		return control_recorded(set, operation, fd, event);
	if (result == 0)
		return 0;
	errno = -result;
	return -1;
}

/* Not a socket that will be held; it may have the number of one that was, and its data. */
static int control_other(int set, int operation, int fd, struct epoll_event *event)
{
	int result = below()->epoll_ctl(set, operation, fd, event);

	if (result == 0 && (operation == EPOLL_CTL_ADD || operation == EPOLL_CTL_MOD))
		registration_other(event->data.u64);
	return result;
}

static bool is_readable(int operation, const struct epoll_event *event)
{
	return operation == EPOLL_CTL_DEL || pointer_may_be_read(event);
}

/* While nothing can be held: no system call more than the program's, and no lock, for nobody else
 * changes anything. What is not known is read when there is need. */
static int control_before(int set, int operation, int fd, struct epoll_event *event)
{
	if (fd_table_kind(set) != FD_EPOLL) {
		epoll_set_saw(set);
		return below()->epoll_ctl(set, operation, fd, event);
	}
	if (!registration_is_for(fd))
		return control_other(set, operation, fd, event);
	return control_recorded(set, operation, fd, event);
}

int hold_epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
	uint64_t signals;
	int result;

	if (process_is_vfork_child() || !is_readable(operation, event))
		return below()->epoll_ctl(set, operation, fd, event);
	if (!holds_are_expected())
		return control_before(set, operation, fd, event);
	if (!registration_is_for(fd))
		return control_other(set, operation, fd, event);
	if (!epoll_set_know(set) || !own_calls_begin())
		return below()->epoll_ctl(set, operation, fd, event);
	signals = registrations_lock(fd);
	result = control_locked(set, operation, fd, event);
	registrations_unlock(fd, signals);
	own_calls_end();
	return result;
}

/* Of several sockets with one datum: can it be this one? */
static bool may_be_meant(int set, int fd, uint32_t events)
{
	struct pollfd entry = { .fd = fd, .events = (short)events };
	struct timespec none = { 0 };
	bool is_ready;

	if (withheld_is_away(set, fd) || !own_calls_begin())
		return false;
	is_ready = raw_syscall(SYS_ppoll, (long)&entry, 1, (long)&none, 0, 0, 0) == 1;
	own_calls_end();
	return is_ready;
}

/* What of it to tell. */
static uint32_t event_told(int set, const struct epoll_event *event, uint64_t now_ns)
{
	int fds[CANDIDATES_MAX], name = registrations_name(set);
	uint64_t data = event->data.u64;
	bool is_certain;
	uint32_t count = registration_candidates(name, data, fds, &is_certain);

	if (!count && name == set && registrations_same(set, data)) {
		name = registrations_name(set);
		count = registration_candidates(name, data, fds, &is_certain);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t told;

		if (!fd_table_find(fds[i]) ||
				(!is_certain && !may_be_meant(name, fds[i], event->events)))
			continue;
		told = withhold(name, fds[i], event, now_ns);
		if (told != event->events)
			return told;
	}
	return event->events;
}

/* How many are left. */
static int events_told(int set, struct epoll_event *events, int count, uint64_t now_ns)
{
	int told = 0;

	for (int i = 0; i < count; i++) {
		events[told] = events[i];
		events[told].events = event_told(set, &events[i], now_ns);
		told += events[told].events != 0;
	}
	return told;
}

#define LOOKS_PAST_END 16

/* Is what comes from it looked at? */
static bool is_known(int set)
{
	if (holds_are_expected())
		return epoll_set_know(set);
	if (fd_table_kind(set) != FD_EPOLL)
		epoll_set_saw(set);
	return false;
}

struct question {
	int set;
	struct epoll_event *events;
	int room;
	const sigset_t *mask;
	enum { PLAIN, MASKED, PRECISE } form;
};

static int round_wait(const struct question *question, uint64_t until_ns, uint64_t now_ns)
{
	const struct question *q = question;
	struct timespec room;

	if (q->form == PRECISE)
		return below()->epoll_pwait2(q->set, q->events, q->room,
				hold_wait_timespec(until_ns, now_ns, &room), q->mask);
	if (q->form == MASKED)
		return below()->epoll_pwait(q->set, q->events, q->room,
				hold_wait_ms(until_ns, now_ns), q->mask);
	return below()->epoll_wait(q->set, q->events, q->room, hold_wait_ms(until_ns, now_ns));
}

static int waited(const struct question *question, uint64_t duration_ns)
{
	uint64_t now_ns = clock_now_ns(), end_ns = hold_wait_end_ns(now_ns, duration_ns);
	int past_end = 0;

	for (;;) {
		uint64_t until_ns = hold_wait_until_ns(0, end_ns, now_ns);
		int count, told;

		is_known(question->set);
		count = round_wait(question, until_ns, now_ns);
		/* Another thread may have made it so meanwhile. */
		if (count < 0 || (count && !is_known(question->set)))
			return count;
		now_ns = clock_now_ns();
		told = events_told(question->set, question->events, count, now_ns);
		/* What was taken out just now is this thread's to bring to the timer's attention.
		 */
		if ((told || holds_are_shared()) && holds_exist())
			hold_wait_until_ns(0, end_ns, now_ns);
		/* What was taken out made room for others. */
		if (told || (now_ns >= end_ns && (!count || ++past_end > LOOKS_PAST_END)))
			return told;
	}
}

/* Without threads, nothing that is held comes to be in the midst of a wait. */
static bool passes(int set)
{
	if (process_is_vfork_child())
		return true;
	if (!__libc_single_threaded || holds_are_expected())
		return false;
	is_known(set);
	return true;
}

int hold_epoll_wait(int set, struct epoll_event *events, int room, int timeout)
{
	if (passes(set))
		return below()->epoll_wait(set, events, room, timeout);
	return waited(&(struct question){ set, events, room, NULL, PLAIN },
			hold_wait_of_ms(timeout));
}

int hold_epoll_pwait(int set, struct epoll_event *events, int room, int timeout,
		const sigset_t *mask)
{
	if (passes(set))
		return below()->epoll_pwait(set, events, room, timeout, mask);
	return waited(&(struct question){ set, events, room, mask, MASKED },
			hold_wait_of_ms(timeout));
}

int hold_epoll_pwait2(int set, struct epoll_event *events, int room,
		const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t duration_ns;

	if (passes(set) || (timeout && !pointer_may_be_read(timeout)) ||
			!hold_wait_of_timespec(timeout, &duration_ns))
		return below()->epoll_pwait2(set, events, room, timeout, mask);
	return waited(&(struct question){ set, events, room, mask, PRECISE }, duration_ns);
}
