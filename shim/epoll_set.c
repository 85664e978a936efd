/* SPDX-License-Identifier: MIT */
#include "shim/epoll_set.h"

#include <errno.h>
#include <fcntl.h>
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
#define READING_TRIES 1000

static _Atomic uint64_t seen[SEEN_MAX / 64]; /* a bit for each set by a number below */
static _Atomic bool is_one_missing; /* by another number */

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

/* Whoever finds a set unknown reads it, one at a time: what a second one forgot, the first had
 * recorded. Not for ever: who reads may be left by siglongjmp, or cut off by fork. */
static _Atomic bool is_reading;

static void reading_begins(void)
{
	int tries = 0;

	while (atomic_exchange_explicit(&is_reading, true, memory_order_acquire) &&
			tries++ < READING_TRIES)
		raw_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static void reading_ends(void)
{
	atomic_store_explicit(&is_reading, false, memory_order_release);
}

/* Known it is when all of it is read; until then whoever asks waits. False: it could not be. */
static bool read_set(int set)
{
	bool is_read = true;

	reading_begins();
	if (fd_table_kind(set) == FD_OTHER) {
		/* Whatever was recorded by its number was another's. */
		registrations_forget(set);
		is_read = fdinfo_each(set, record);
		fd_table_set(set, FD_EPOLL);
	}
	reading_ends();
	return is_read;
}

bool epoll_set_know(int set)
{
	enum fd_kind kind = fd_table_kind(set);

	if (kind == FD_EPOLL)
		return true;
	if (kind != FD_OTHER || (uint32_t)set >= fd_table.size || !own_calls_begin())
		return false;
	if (!read_set(set)) {
		epoll_set_saw(set);
		if ((uint32_t)set >= SEEN_MAX)
			atomic_store_explicit(&is_one_missing, true, memory_order_relaxed);
	}
	own_calls_end();
	return true;
}

void epoll_set_born(int set)
{
	if (!registrations.all || fd_table_kind(set) != FD_OTHER ||
			(uint32_t)set >= fd_table.size || !own_calls_begin())
		return;
	registrations_forget(set);
	fd_table_set(set, FD_EPOLL);
	if ((uint32_t)set < SEEN_MAX)
		atomic_fetch_and_explicit(&seen[set / 64], ~(UINT64_C(1) << (uint32_t)set % 64),
				memory_order_relaxed);
	own_calls_end();
}

void epoll_set_saw(int set)
{
	uint64_t bit = UINT64_C(1) << (uint32_t)set % 64;

	if ((uint32_t)set < SEEN_MAX &&
			!(atomic_load_explicit(&seen[set / 64], memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&seen[set / 64], bit, memory_order_relaxed);
}

/* Now, or is there nothing to know? */
static bool know_seen(int set)
{
	enum fd_kind kind = fd_table_kind(set);

	if ((kind != FD_EPOLL && kind != FD_OTHER) ||
			raw_syscall(SYS_fcntl, set, F_GETFD, 0, 0, 0, 0) == -EBADF)
		return true;
	return kind == FD_OTHER ? read_set(set) : fdinfo_each(set, record);
}

bool epoll_sets_know_seen(void)
{
	bool is_all = !atomic_load_explicit(&is_one_missing, memory_order_relaxed);

	for (uint32_t i = 0; i < SEEN_MAX / 64; i++) {
		uint64_t bits = atomic_load_explicit(&seen[i], memory_order_relaxed);

		for (; bits; bits &= bits - 1) {
			if (!own_calls_begin())
				return false;
			if (know_seen((int)(i * 64) + __builtin_ctzll(bits)))
				atomic_fetch_and_explicit(&seen[i], ~(bits & -bits),
						memory_order_relaxed);
			else
				is_all = false;
			own_calls_end();
		}
	}
	return is_all;
}
