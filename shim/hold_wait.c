/* SPDX-License-Identifier: MIT */
#include "shim/hold_wait.h"

#include <limits.h>
#include <stddef.h>
#include <sys/single_threaded.h>

#include "core/clock.h"
#include "shim/timer.h"
#include "shim/withheld.h"

#define NS_PER_MS 1000000ull
#define NS_PER_US 1000ull

uint64_t hold_wait_end_ns(uint64_t now_ns, uint64_t duration_ns)
{
	return duration_ns >= FOR_EVER - now_ns ? FOR_EVER : now_ns + duration_ns;
}

uint64_t hold_wait_of_ms(int timeout)
{
	return timeout < 0 ? FOR_EVER : (uint64_t)timeout * NS_PER_MS;
}

bool hold_wait_of_timespec(const struct timespec *timeout, uint64_t *ret_ns)
{
	*ret_ns = FOR_EVER;
	if (!timeout)
		return true;
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
			timeout->tv_nsec >= (long)CLOCK_SECOND_NS)
		return false;
	if ((uint64_t)timeout->tv_sec < FOR_EVER / CLOCK_SECOND_NS)
		*ret_ns = (uint64_t)timeout->tv_sec * CLOCK_SECOND_NS + (uint64_t)timeout->tv_nsec;
	return true;
}

/* Who waits already waits without a limit: with other threads it takes the timer's. Where that may
 * not run, this one does what can be done. */
static uint64_t withheld_due_ns(uint64_t now_ns)
{
	uint64_t due_ns = holds_exist() ? holds_serve(now_ns) : 0;

	if (due_ns && (!__libc_single_threaded || holds_are_shared()) &&
			timer_watch_deadlines(due_ns))
		return 0;
	return due_ns;
}

uint64_t hold_wait_until_ns(uint64_t due_ns, uint64_t end_ns, uint64_t now_ns)
{
	uint64_t withheld_ns = withheld_due_ns(now_ns);

	if (due_ns && due_ns < end_ns)
		end_ns = due_ns;
	return withheld_ns && withheld_ns < end_ns ? withheld_ns : end_ns;
}

int hold_wait_ms(uint64_t until_ns, uint64_t now_ns)
{
	uint64_t ms;

	if (until_ns == FOR_EVER)
		return -1;
	ms = (clock_elapsed_ns(now_ns, until_ns) + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

struct timespec *hold_wait_timespec(uint64_t until_ns, uint64_t now_ns, struct timespec *room)
{
	uint64_t left_ns = clock_elapsed_ns(now_ns, until_ns);

	if (until_ns == FOR_EVER)
		return NULL;
	*room = clock_timespec(left_ns);
	return room;
}

struct timeval *hold_wait_timeval(uint64_t until_ns, uint64_t now_ns, struct timeval *room)
{
	uint64_t left_us = (clock_elapsed_ns(now_ns, until_ns) + NS_PER_US - 1) / NS_PER_US;

	if (until_ns == FOR_EVER)
		return NULL;
	*room = (struct timeval){ (time_t)(left_us / 1000000), (suseconds_t)(left_us % 1000000) };
	return room;
}
