/* SPDX-License-Identifier: MIT */
#include "shim/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "core/segment.h"
#include "shim/raw.h"
#include "shim/runtime.h"

#define WATCHED_MAX 64
/* When the thread is the last one alive, glibc runs the program's exit handlers on its stack. */
#define STACK_ABOVE_MINIMUM 65536
/* How often it looks whether it is the last thread alive, at least. */
#define LOOK_ROUND_NS  100000000ull
/* All but the one by which setuid() reaches every thread: who makes it waits for all, with a lock
 * that pthread_create() wants. */
#define ALL_SIGNALS    (~(1ull << (__SIGRTMIN + 1 - 1)))
#define WAIT_STEP_NS   50000
#define WAIT_STEPS_MAX 20000 /* one second */

enum timer_state { TIMER_IDLE, TIMER_STARTING, TIMER_RUNNING };

static struct {
	/* One word per watched circuit: 1 + index of its rule above, index of its cell below. */
	_Atomic uint32_t watched[WATCHED_MAX];
	_Atomic uint32_t state;
	_Atomic uint32_t bell; /* the thread sleeps on it; rung to make it look again */
	_Atomic uint32_t thread_id;
	_Atomic uint32_t holds; /* timer_hold() without its timer_release() */
	/* No thread could be made: not tried again before a later wake time. */
	_Atomic uint64_t given_up_ns;
	_Atomic bool is_child; /* of a fork */
} timer;

/* 0: there is no such cell (any more). */
static uint32_t watch_word(const struct rule *rule, const struct cell *cell)
{
	uint32_t rule_index = (uint32_t)(rule - runtime.config.rules);
	uint32_t cell_index = segment_cell_index(runtime.segment, cell);

	return cell_index < SEGMENT_CELLS ? (rule_index + 1) << 16 | cell_index : 0;
}

/* True where it was not watched before; a full table watches no more. */
static bool watch_add(uint32_t word)
{
	uint32_t seen;

	for (uint32_t i = 0; i < WATCHED_MAX; i++) {
		_Atomic uint32_t *slot = &timer.watched[(word + i) % WATCHED_MAX];

		seen = atomic_load_explicit(slot, memory_order_relaxed);
		if (seen == word)
			return false;
		/* seq_cst, as in all that orders `watched` against `state`: the thread goes idle
		 * and then looks for watches, we add a watch and then look whether it is idle. */
		if (!seen && atomic_compare_exchange_strong_explicit(slot, &seen, word,
					     memory_order_seq_cst, memory_order_relaxed))
			return true;
		if (seen == word)
			return false;
	}
	return false;
}

static bool is_anything_watched(void)
{
	for (uint32_t i = 0; i < WATCHED_MAX; i++) {
		if (atomic_load_explicit(&timer.watched[i], memory_order_seq_cst))
			return true;
	}
	return false;
}

/* Wakes the circuit if it is time; when to look again, or 0: no more. */
static uint64_t watch_serve(uint32_t word, uint64_t now_ns)
{
	const struct rule *rule = &runtime.config.rules[(word >> 16) - 1];
	struct cell *cell = segment_cell_at(runtime.segment, word & 0xffff);
	struct breaker breaker;
	uint64_t due_ns;

	if (!cell)
		return 0;
	breaker = runtime_breaker(rule, cell);
	due_ns = breaker_wake_time_ns(&breaker, now_ns);
	if (!due_ns || due_ns > now_ns)
		return due_ns;
	runtime_announce(&breaker, breaker_wake(&breaker, now_ns));
	due_ns = breaker_wake_time_ns(&breaker, now_ns);
	/* What did not move (a force) moves with the next acquire, if ever. */
	return due_ns > now_ns ? due_ns : 0;
}

/* When the next watched circuit is due, or 0: none is watched. */
static uint64_t watches_serve(uint64_t now_ns)
{
	uint64_t earliest_ns = 0, due_ns;
	uint32_t word;

	for (uint32_t i = 0; i < WATCHED_MAX; i++) {
		word = atomic_load_explicit(&timer.watched[i], memory_order_acquire);
		if (!word)
			continue;
		due_ns = watch_serve(word, now_ns);
		if (!due_ns)
			atomic_store_explicit(&timer.watched[i], 0, memory_order_seq_cst);
		else if (!earliest_ns || due_ns < earliest_ns)
			earliest_ns = due_ns;
	}
	return earliest_ns;
}

static void bell_ring(void)
{
	atomic_fetch_add_explicit(&timer.bell, 1, memory_order_release);
	raw_syscall(SYS_futex, (long)&timer.bell, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void bell_wait(uint32_t seen, uint64_t duration_ns)
{
	struct timespec duration = { .tv_nsec = (long)duration_ns };

	if (duration_ns > LOOK_ROUND_NS)
		duration.tv_nsec = LOOK_ROUND_NS;
	raw_syscall(SYS_futex, (long)&timer.bell, FUTEX_WAIT_PRIVATE, seen, (long)&duration, 0, 0);
}

/* As the kernel counts them, asked without a descriptor; 0 where there is no /proc. */
static long thread_count(void)
{
	struct stat tasks;

	if (raw_syscall(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&tasks, 0, 0, 0))
		return 0;
	return (long)tasks.st_nlink - 2;
}

/* Have all threads of the program ended? Only its first one may be left, as a zombie, which
 * has no program file any more. */
static bool is_last_alive(void)
{
	char path[1];
	long threads = thread_count();

	if (!threads || threads > 2)
		return false;
	return raw_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
			       sizeof(path), 0, 0) == -ENOENT;
}

static bool must_end(void)
{
	return atomic_load_explicit(&timer.holds, memory_order_seq_cst) ||
	       atomic_load_explicit(&runtime.has_filter, memory_order_relaxed) || is_last_alive();
}

/* Nothing is watched: true where the thread may go. */
static bool goes_idle(void)
{
	uint32_t idle = TIMER_IDLE;

	atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
	if (!is_anything_watched())
		return true;
	return !atomic_compare_exchange_strong_explicit(&timer.state, &idle, TIMER_RUNNING,
			memory_order_seq_cst, memory_order_relaxed);
}

static void wait_step(void)
{
	struct timespec step = { .tv_nsec = WAIT_STEP_NS };

	raw_syscall(SYS_nanosleep, (long)&step, 0, 0, 0, 0, 0);
}

/* glibc counts a thread as ended before the kernel does, and unshare() asks the kernel. */
static void wait_until_gone(uint32_t thread_id)
{
	long process_id = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	for (int step = 0; thread_id && step < WAIT_STEPS_MAX; step++) {
		if (raw_syscall(SYS_tgkill, process_id, thread_id, 0, 0, 0, 0) == -ESRCH)
			return;
		wait_step();
	}
}

static void *timer_run(void *nothing)
{
	uint64_t now_ns, due_ns;
	uint32_t bell;

	/* Whoever holds the timer waits for one thread: the last one must be gone by then. */
	wait_until_gone(atomic_load_explicit(&timer.thread_id, memory_order_acquire));
	atomic_store_explicit(&timer.thread_id, (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0),
			memory_order_release);
	raw_syscall(SYS_prctl, PR_SET_NAME, (long)"shunt-timer", 0, 0, 0, 0);
	atomic_store_explicit(&timer.state, TIMER_RUNNING, memory_order_seq_cst);
	for (;;) {
		bell = atomic_load_explicit(&timer.bell, memory_order_acquire);
		if (must_end()) {
			atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
			return nothing;
		}
		now_ns = clock_now_ns();
		due_ns = watches_serve(now_ns);
		if (due_ns)
			bell_wait(bell, due_ns - now_ns);
		else if (goes_idle())
			return nothing;
	}
}

static int thread_create(size_t stack_bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	int error = pthread_attr_init(&attributes);

	if (error)
		return error;
	sigfillset(&all);
	pthread_attr_setsigmask_np(&attributes, &all);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (stack_bytes)
		pthread_attr_setstacksize(&attributes, stack_bytes);
	error = pthread_create(&thread, &attributes, timer_run, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

static uint64_t signals_change(int how, uint64_t signals)
{
	uint64_t before = 0;

	raw_syscall(SYS_rt_sigprocmask, how, (long)&signals, (long)&before, sizeof(signals), 0, 0);
	return before;
}

/* A fork's child has one thread, which libc does not notice; and of its parent's locks, which a new
 * thread may want, those of allocators and sanitizers that know nothing of fork stay held. */
static bool is_single_child(void)
{
	return runtime.config.timer != TIMER_ON &&
	       atomic_load_explicit(&timer.is_child, memory_order_relaxed) && thread_count() == 1;
}

/* The state is TIMER_STARTING. */
static void thread_start(uint64_t due_ns)
{
	int kept = errno, error = EAGAIN;

	/* Who holds it sees that it is starting, or we see the hold; when that was released, the
	 * filter that it was for. */
	if (!atomic_load_explicit(&timer.holds, memory_order_seq_cst) &&
			!atomic_load_explicit(&runtime.has_filter, memory_order_relaxed)) {
		if (!is_single_child())
			error = thread_create((size_t)PTHREAD_STACK_MIN + STACK_ABOVE_MINIMUM);
		/* The program's own thread-local data did not fit. */
		if (error == EINVAL)
			error = thread_create(0);
		if (error)
			atomic_store_explicit(&timer.given_up_ns, due_ns, memory_order_relaxed);
	}
	if (error)
		atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
	errno = kept;
}

/* Every thread of a JVM blocks it. */
#define BLOCKED_BY_JVM (UINT64_C(1) << (SIGQUIT - 1))

/*
 * A handler may have come while this very thread held a lock that pthread_create() wants: where a
 * signal is blocked, it may be one's handler, so somebody else shall start the thread. All are
 * blocked meanwhile: no handler leaves by longjmp, and no cancellation comes.
 */
static void timer_start(uint64_t due_ns)
{
	uint32_t idle = TIMER_IDLE;
	uint64_t blocked;

	if (due_ns <= atomic_load_explicit(&timer.given_up_ns, memory_order_relaxed))
		return;
	blocked = signals_change(SIG_BLOCK, 0);
	if (blocked & ~BLOCKED_BY_JVM)
		return;
	signals_change(SIG_SETMASK, ALL_SIGNALS);
	if (atomic_compare_exchange_strong_explicit(&timer.state, &idle, TIMER_STARTING,
			    memory_order_seq_cst, memory_order_relaxed))
		thread_start(due_ns);
	signals_change(SIG_SETMASK, blocked);
}

static bool may_start(void)
{
	if (runtime.config.timer == TIMER_OFF ||
			atomic_load_explicit(&runtime.has_filter, memory_order_relaxed))
		return false;
	return runtime.config.timer == TIMER_ON || !__libc_single_threaded;
}

void timer_watch(const struct rule *rule, struct cell *cell, uint64_t due_ns)
{
	bool is_new;
	uint32_t state, word = may_start() ? watch_word(rule, cell) : 0;

	if (!word)
		return;
	is_new = watch_add(word);
	state = atomic_load_explicit(&timer.state, memory_order_seq_cst);
	if (state == TIMER_IDLE)
		timer_start(due_ns);
	else if (is_new && state == TIMER_RUNNING)
		bell_ring();
}

void timer_watch_open(const struct rule *rule, const struct breaker *breaker, uint64_t now_ns)
{
	uint64_t due_ns = breaker_wake_time_ns(breaker, now_ns);

	if (due_ns)
		timer_watch(rule, breaker->cell, due_ns);
}

/* On the thread itself when it was the last one alive: glibc runs exit handlers there. */
static bool is_timer_thread(void)
{
	return atomic_load_explicit(&timer.thread_id, memory_order_acquire) ==
			(uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

void timer_hold(void)
{
	uint32_t thread_id;

	atomic_fetch_add_explicit(&timer.holds, 1, memory_order_seq_cst);
	for (int step = 0;
			step < WAIT_STEPS_MAX &&
			atomic_load_explicit(&timer.state, memory_order_seq_cst) == TIMER_STARTING;
			step++)
		wait_step();
	thread_id = atomic_load_explicit(&timer.thread_id, memory_order_acquire);
	if (!thread_id || is_timer_thread())
		return;
	bell_ring();
	wait_until_gone(thread_id);
	/* Unless another's hold has ended, and the next thread is there. */
	atomic_compare_exchange_strong_explicit(&timer.thread_id, &thread_id, 0,
			memory_order_relaxed, memory_order_relaxed);
}

void timer_release(void)
{
	atomic_fetch_sub_explicit(&timer.holds, 1, memory_order_seq_cst);
}

void timer_forget(void)
{
	atomic_store_explicit(&timer.is_child, true, memory_order_relaxed);
	for (uint32_t i = 0; i < WATCHED_MAX; i++)
		atomic_store_explicit(&timer.watched[i], 0, memory_order_relaxed);
	atomic_store_explicit(&timer.thread_id, 0, memory_order_relaxed);
	atomic_store_explicit(&timer.holds, 0, memory_order_relaxed);
	atomic_store_explicit(&timer.given_up_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_relaxed);
}
