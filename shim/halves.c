/* SPDX-License-Identifier: MIT */
#include "shim/halves.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include "shim/raw.h"

#define OUT_BITS ((uint32_t)(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND))
#define IN_BITS \
	((uint32_t)(EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND | EPOLLMSG | EPOLLRDHUP))

uint32_t halves_bits(const struct hold_times *times, uint32_t events, uint64_t now_ns)
{
	uint32_t bits = 0;

	if (times->in_ns > now_ns)
		bits |= events & (IN_BITS | HALVES_ERRORS);
	if (times->out_ns > now_ns)
		bits |= events & OUT_BITS;
	return bits;
}

uint32_t halves_held(const struct hold_times *times, uint64_t now_ns)
{
	return (times->in_ns > now_ns ? HALF_IN : 0) | (times->out_ns > now_ns ? HALF_OUT : 0);
}

uint32_t halves_of(const struct registration *registration)
{
	return atomic_load_explicit(&registration->withheld, memory_order_seq_cst);
}

uint32_t halves_events(const struct registration *registration)
{
	return atomic_load_explicit(&registration->events, memory_order_relaxed);
}

uint64_t halves_data(const struct registration *registration)
{
	return atomic_load_explicit(&registration->data, memory_order_relaxed);
}

/* What stays in the set while these halves are not to be. */
static uint32_t events_without(uint32_t events, uint32_t withheld)
{
	if (withheld & HALF_IN)
		events &= ~IN_BITS;
	if (withheld & HALF_OUT)
		events &= ~OUT_BITS;
	return events;
}

/* Errors are reported as long as it is in the set at all; and only what is not in it is certain to
 * stay fired where it has. */
uint32_t halves_withheld(uint32_t events, uint32_t halves, bool is_failing)
{
	bool wants_out = events_without(events, halves) & OUT_BITS;

	if (halves && events & EPOLLONESHOT)
		return halves | HALVES_AWAY;
	if (halves & HALF_IN && (is_failing || !wants_out))
		return halves | HALVES_AWAY;
	return halves;
}

long halves_control(const struct registration *registration, int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = halves_data(registration) };

	return raw_syscall(SYS_epoll_ctl, registration_set(registration), operation,
			registration_fd(registration), (long)&event, 0, 0);
}

long halves_move(const struct registration *registration, uint32_t withheld)
{
	bool was_away = halves_of(registration) & HALVES_AWAY, is_away = withheld & HALVES_AWAY;
	uint32_t all = halves_events(registration), events = events_without(all, withheld);
	long result = 0;

	if (was_away)
		return is_away ? 0 : halves_control(registration, EPOLL_CTL_ADD, events);
	if (!is_away && !(all & EPOLLEXCLUSIVE))
		return halves_control(registration, EPOLL_CTL_MOD, events);
	result = halves_control(registration, EPOLL_CTL_DEL, 0);
	return is_away || result ? result : halves_control(registration, EPOLL_CTL_ADD, events);
}

void halves_set_times(struct registration *registration, const struct hold_times *times)
{
	atomic_store_explicit(&registration->in_ns, times->in_ns, memory_order_relaxed);
	atomic_store_explicit(&registration->out_ns, times->out_ns, memory_order_relaxed);
}

uint64_t halves_due_ns(const struct registration *registration)
{
	uint32_t withheld = halves_of(registration);
	uint64_t in_ns = atomic_load_explicit(&registration->in_ns, memory_order_relaxed);
	uint64_t out_ns = atomic_load_explicit(&registration->out_ns, memory_order_relaxed);

	if (!(withheld & HALF_IN))
		return out_ns;
	return withheld & HALF_OUT && out_ns < in_ns ? out_ns : in_ns;
}
