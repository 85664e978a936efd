/* SPDX-License-Identifier: MIT */
#include "shim/expectation.h"

#include <sys/single_threaded.h>

#include "shim/epoll_set.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/registration.h"
#include "shim/runtime.h"

_Atomic bool withheld_is_recorded, withheld_is_expected;

void holds_record(void)
{
	if (!holds_are_recorded())
		atomic_store_explicit(&withheld_is_recorded, true, memory_order_release);
}

void holds_expect(void)
{
	holds_record();
	if (!holds_are_expected())
		atomic_store_explicit(&withheld_is_expected, true, memory_order_release);
}

bool hold_may_be_given_back(void)
{
	if (own_calls_are_forbidden() || process_is_vfork_child())
		return false;
	return runtime.config.timer != TIMER_OFF || __libc_single_threaded;
}

bool hold_is_possible(void)
{
	return hold_may_be_given_back() && epoll_sets_know_seen();
}

static _Atomic bool are_shared;

bool holds_are_shared(void)
{
	return atomic_load_explicit(&are_shared, memory_order_relaxed);
}

void holds_share(void)
{
	if (registrations.all && atomic_load_explicit(&registrations.end, memory_order_relaxed))
		atomic_store_explicit(&are_shared, true, memory_order_relaxed);
}
