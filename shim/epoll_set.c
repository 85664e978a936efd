/* SPDX-License-Identifier: MIT */
#include "shim/epoll_set.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "shim/fd_table.h"
#include "shim/fdinfo.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/registration.h"

#define SEEN_MAX 1024

static _Atomic uint64_t seen[SEEN_MAX / 64]; /* a bit for each set by a number below */

/* Readiness that is known to nobody: an edge that told of it may be spent (hold_again()). */
static void report_anew(int set, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	long operation = EPOLL_CTL_MOD;

	if (!(events & EPOLLET) || events & EPOLLONESHOT)
		return;
	if (events & EPOLLEXCLUSIVE) {
		operation = EPOLL_CTL_ADD;
		raw_syscall(SYS_epoll_ctl, set, EPOLL_CTL_DEL, fd, (long)&event, 0, 0);
	}
	raw_syscall(SYS_epoll_ctl, set, operation, fd, (long)&event, 0, 0);
}

static void record(int set, int fd, uint32_t events, uint64_t data)
{
	struct registration *registration;
	uint64_t signals;

	if (!registration_is_for(fd)) {
		registration_other(data);
		return;
	}
	signals = registrations_lock(fd);
	/* What the hook has seen meanwhile is newer. */
	if (!registration_find(set, fd)) {
		registration = registration_claim(set, fd);
		if (registration)
			registration_fill(registration, events, data);
		report_anew(set, fd, events, data);
	}
	registrations_unlock(fd, signals);
}

bool epoll_set_know(int set)
{
	enum fd_kind kind = fd_table_kind(set);

	if (kind == FD_EPOLL)
		return true;
	if (kind != FD_OTHER || (uint32_t)set >= fd_table.size || !own_calls_begin())
		return false;
	registrations_forget(set);
	/* First, and then read: what another thread registers from now on is not overwritten. */
	fd_table_set(set, FD_EPOLL);
	fdinfo_each(set, record);
	own_calls_end();
	return true;
}

void epoll_set_saw(int set)
{
	uint64_t bit = UINT64_C(1) << (uint32_t)set % 64;

	if ((uint32_t)set < SEEN_MAX &&
			!(atomic_load_explicit(&seen[set / 64], memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&seen[set / 64], bit, memory_order_relaxed);
}

void epoll_sets_know_seen(void)
{
	for (uint32_t i = 0; i < SEEN_MAX / 64; i++) {
		uint64_t bits = 0;

		if (atomic_load_explicit(&seen[i], memory_order_relaxed))
			bits = atomic_exchange_explicit(&seen[i], 0, memory_order_relaxed);
		for (; bits; bits &= bits - 1)
			epoll_set_know((int)(i * 64) + __builtin_ctzll(bits));
	}
}
