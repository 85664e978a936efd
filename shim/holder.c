/* SPDX-License-Identifier: MIT */
#include "shim/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/format.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/runtime.h"
#include "shim/signals.h"

#define RECLAIM_NS 200000000ull
#define RETRY_NS   200000000ull
#define WAITS	   1u /* in cell->released: somebody waits; the rest counts */
#define STAT_SIZE  512 /* the first 22 fields fit */

static struct holder holder;

/* No seat was free then, by the coarse clock; 0: that never was so. */
static _Atomic uint64_t unseated_ns;

/* When this process last looked for the dead, by a bulkhead's first block: one that is full all the
 * time keeps nobody from looking at the others. */
static _Atomic uint64_t reclaimed_ns[PLACE_BLOCKS];

/* What /proc/PID/stat says of a process. */
struct process {
	char state;	  /* '\0': it cannot be told */
	uint32_t threads; /* that have not been reaped */
	uint32_t start;	  /* in clock ticks */
};

/* Fields are counted from 1; the second, in parentheses, may hold anything. */
static const char *field_of(const char *stat, int number)
{
	const char *at = strrchr(stat, ')');

	for (int field = 1; at && field < number - 1; field++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : "";
}

static struct process process_of(uint32_t pid)
{
	char path[32], stat[STAT_SIZE];
	long fd, size;

	text_format(path, sizeof(path), "/proc/%u/stat", pid);
	fd = raw_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return (struct process){ .state = '\0' };
	size = raw_syscall(SYS_read, fd, (long)stat, sizeof(stat) - 1, 0, 0, 0);
	raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	stat[size > 0 ? size : 0] = '\0';
	return (struct process){
		.state = *field_of(stat, 3),
		.threads = (uint32_t)strtoull(field_of(stat, 20), NULL, 10),
		.start = (uint32_t)strtoull(field_of(stat, 22), NULL, 10),
	};
}

/* Alive where in doubt: a place that is held too long does less harm than one that two hold. */
static bool is_alive(struct seat_owner owner)
{
	struct process process;

	if (raw_syscall(SYS_kill, owner.pid, 0, 0, 0, 0, 0) == -ESRCH)
		return false;
	process = process_of(owner.pid);
	/* Dead, though nobody has reaped it; unless only its first thread has ended. */
	if ((process.state == 'Z' || process.state == 'X') && process.threads <= 1)
		return false;
	return !owner.start || !process.start ||
	       owner.start == (process.start & ((1u << SEAT_START_BITS) - 1));
}

static void take_seat(void)
{
	struct seat_owner owner = { .pid = runtime.pid, .start = process_of(runtime.pid).start };
	seat_t there = 0, seat = seat_take(&runtime.segment->seats, owner, is_alive);

	if (!seat && !atomic_exchange_explicit(&unseated_ns, clock_coarse_ns(),
				    memory_order_relaxed))
		atomic_fetch_add_explicit(&runtime.segment->header.unseated, 1,
				memory_order_relaxed);
	/* Of threads that come here at once the first one's seat is the process's. */
	if (!atomic_compare_exchange_strong_explicit(&holder.seat, &there, seat,
			    memory_order_acq_rel, memory_order_acquire))
		seat_leave(&runtime.segment->seats, seat);
}

void holder_start(void)
{
	struct seat_table *seats = &runtime.segment->seats;

	if (seat_is_known(seats, runtime.pid))
		seat_drop(seats, (struct seat_owner){ runtime.pid, process_of(runtime.pid).start });
}

/* Where all seats are taken each try asks for all who have one: not with every call. */
static bool may_find_seat(void)
{
	uint64_t last_ns = atomic_load_explicit(&unseated_ns, memory_order_relaxed);

	return !last_ns || clock_elapsed_ns(last_ns, clock_coarse_ns()) >= RETRY_NS;
}

struct holder *holder_ready(void)
{
	if (!holder.places) {
		holder.seats = &runtime.segment->seats;
		holder.places = &runtime.segment->places;
	}
	if (!atomic_load_explicit(&holder.seat, memory_order_acquire) && may_find_seat() &&
			own_calls_begin()) {
		take_seat();
		own_calls_end();
	}
	return &holder;
}

/* True for one of all that come within RECLAIM_NS. */
static bool is_due(const struct bulkhead *bulkhead, uint64_t now_ns)
{
	const struct place_block *first =
			place_block(bulkhead->places, bulkhead->key, 0, false);
	_Atomic uint64_t *word = first ? &reclaimed_ns[first - bulkhead->places->blocks] : NULL;
	uint64_t last_ns = word ? atomic_load_explicit(word, memory_order_relaxed) : 0;

	return word && (!last_ns || clock_elapsed_ns(last_ns, now_ns) >= RECLAIM_NS) &&
			atomic_compare_exchange_strong_explicit(word, &last_ns, now_ns,
					memory_order_relaxed, memory_order_relaxed);
}

bool holder_reclaim(const struct bulkhead *bulkhead, uint64_t now_ns)
{
	bool has_found;

	if (!is_due(bulkhead, now_ns) || !own_calls_begin())
		return false;
	has_found = bulkhead_reclaim(bulkhead, is_alive) > 0;
	own_calls_end();
	return has_found;
}

/* Shared by processes: not FUTEX_PRIVATE. */
static void wake_all(_Atomic uint32_t *word)
{
	raw_syscall(SYS_futex, (long)word, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

void holder_give(struct cell *cell, place_t place)
{
	uint32_t seen;

	if (!place || !place_give(&runtime.segment->places, place))
		return;
	/* seq_cst, as in holder_wait_begins(): of place and mark, one of the two sees the other. */
	seen = atomic_load_explicit(&cell->released, memory_order_seq_cst);
	if (!(seen & WAITS) || !own_calls_begin())
		return;
	atomic_store_explicit(&cell->released, (seen | WAITS) + 1, memory_order_seq_cst);
	wake_all(&cell->released);
	own_calls_end();
}

uint32_t holder_wait_begins(struct cell *cell)
{
	return atomic_fetch_or_explicit(&cell->released, WAITS, memory_order_seq_cst) | WAITS;
}

static enum holder_wait interrupted(void)
{
	if (own_calls_are_forbidden())
		return HOLDER_FORBIDDEN;
	return signals_may_interrupt() ? HOLDER_INTERRUPTED : HOLDER_WAITED;
}

enum holder_wait holder_wait(struct cell *cell, uint32_t since, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns(), left_ns = clock_elapsed_ns(now_ns, until_ns);
	struct timespec wait;

	if (own_calls_are_forbidden())
		return HOLDER_FORBIDDEN;
	/* The dead give nothing back: somebody has to look. */
	if (left_ns > RECLAIM_NS)
		left_ns = RECLAIM_NS;
	wait = clock_timespec(left_ns);
	if (raw_syscall(SYS_futex, (long)&cell->released, FUTEX_WAIT, since, (long)&wait, 0, 0) ==
			-EINTR)
		return interrupted();
	return HOLDER_WAITED;
}

void holder_forked(void)
{
	atomic_store_explicit(&holder.seat, 0, memory_order_relaxed);
	atomic_store_explicit(&unseated_ns, 0, memory_order_relaxed);
}

void holder_leave(void)
{
	seat_t seat = atomic_exchange_explicit(&holder.seat, 0, memory_order_acq_rel);

	if (seat && runtime.segment)
		seat_leave(&runtime.segment->seats, seat);
}
