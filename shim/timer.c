/* SPDX-License-Identifier: MIT */
#include "shim/timer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/single_threaded.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "core/segment.h"
#include "shim/deadline.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/signals.h"
#include "shim/thread.h"
#include "shim/withheld.h"

#define WATCHED_MAX 64
/* When the thread is the last one alive, glibc runs the program's exit handlers on its stack. */
#define STACK_ABOVE_MINIMUM 65536
/* Between two looks: what is due meanwhile is served together, and many connections take time to
 * look at. */
#define REST_NS          50000ull
#define REST_FOR_EACH_NS 200ull
#define TICK_BITS        24

enum timer_state { TIMER_IDLE, TIMER_STARTING, TIMER_RUNNING };

static struct {
	/* One word per watched circuit: 1 + index of its rule above, index of its cell below. */
	_Atomic uint32_t watched[WATCHED_MAX];
	_Atomic uint32_t state;
	_Atomic uint32_t bell; /* the thread sleeps on it; rung to make it look again */
	/* When it looks next by itself: 0, it does not run; UINT64_MAX, it is looking. */
	_Atomic uint64_t looks_ns;
	/* No thread could be made: not tried again before a later wake time. */
	_Atomic uint64_t given_up_ns;
	_Atomic bool is_child; /* of a fork */
} timer;

/* This thread has signals blocked: not looked at again before a later wake time, while another may
 * start it. */
static _Thread_local uint32_t refused_ticks;

/* Of a sixtieth of a second: they last for two years. */
static uint32_t ticks_of(uint64_t ns)
{
	return (uint32_t)(ns >> TICK_BITS);
}

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

/* Nothing is watched: true where the thread may go. */
static bool goes_idle(void)
{
	uint32_t idle = TIMER_IDLE;

	atomic_store_explicit(&timer.looks_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
	if (!is_anything_watched() && !deadlines_exist() && !holds_exist())
		return true;
	if (!atomic_compare_exchange_strong_explicit(&timer.state, &idle, TIMER_RUNNING,
			    memory_order_seq_cst, memory_order_relaxed))
		return true;
	atomic_store_explicit(&timer.looks_ns, UINT64_MAX, memory_order_seq_cst);
	return false;
}

/* The earlier one of two times, of which each may be 0: none. */
static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
	if (!a_ns || !b_ns)
		return a_ns ? a_ns : b_ns;
	return a_ns < b_ns ? a_ns : b_ns;
}

/* seq_cst: we say when we look next and then whether the bell was rung, who has an earlier deadline
 * looks when we do and then rings it. */
static void rest(uint32_t bell, uint64_t due_ns, uint64_t now_ns)
{
	uint64_t rest_ns = clock_elapsed_ns(now_ns, due_ns);
	uint64_t least_ns = REST_NS + REST_FOR_EACH_NS *
			atomic_load_explicit(&fd_table.live, memory_order_relaxed);

	if (rest_ns < least_ns)
		rest_ns = least_ns;
	if (rest_ns > THREAD_ROUND_NS)
		rest_ns = THREAD_ROUND_NS;
	atomic_store_explicit(&timer.looks_ns, now_ns + rest_ns, memory_order_seq_cst);
	thread_wait(&timer.bell, bell, rest_ns);
	atomic_store_explicit(&timer.looks_ns, UINT64_MAX, memory_order_seq_cst);
}

static void timer_run(void *nothing)
{
	uint64_t now_ns, due_ns;
	uint32_t bell;

	(void)nothing;
	atomic_store_explicit(&timer.looks_ns, UINT64_MAX, memory_order_seq_cst);
	atomic_store_explicit(&timer.state, TIMER_RUNNING, memory_order_seq_cst);
	for (;;) {
		bell = atomic_load_explicit(&timer.bell, memory_order_acquire);
		if (thread_must_end()) {
			atomic_store_explicit(&timer.looks_ns, 0, memory_order_relaxed);
			atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
			return;
		}
		now_ns = clock_now_ns();
		due_ns = earlier(watches_serve(now_ns), deadlines_serve(now_ns));
		due_ns = earlier(due_ns, holds_serve(now_ns));
		if (due_ns)
			rest(bell, due_ns, now_ns);
		else if (goes_idle())
			return;
	}
}

/* A fork's child has one thread, which libc does not notice; and of its parent's locks, which a new
 * thread may want, those of allocators and sanitizers that know nothing of fork stay held. */
static bool is_single_child(void)
{
	return runtime.config.timer != TIMER_ON &&
	       atomic_load_explicit(&timer.is_child, memory_order_relaxed) &&
	       thread_alive_count() == 1;
}

/* The state is TIMER_STARTING. */
static void thread_begin(uint64_t due_ns, bool is_needed)
{
	struct thread_plan plan = {
		.run = timer_run,
		.bell = &timer.bell,
		.name = "shunt-timer",
		.stack_bytes = STACK_ABOVE_MINIMUM,
	};
	int error = !is_needed && is_single_child() ? EAGAIN : thread_start(&plan);

	if (error)
		atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_seq_cst);
	if (error && error != EBUSY)
		atomic_store_explicit(&timer.given_up_ns, due_ns, memory_order_relaxed);
}

/*
 * A handler may have come while this very thread held a lock that pthread_create() wants: where a
 * signal is blocked, it may be one's handler, so somebody else shall start the thread. Where it is
 * needed, only those that have a handler count, and not the one that every thread of a Java machine
 * has blocked, all its life.
 */
static bool may_be_in_handler(uint64_t blocked, bool is_needed)
{
	if (!blocked || !is_needed)
		return blocked;
	return signals_handled(blocked & ~(1ull << (SIGQUIT - 1)));
}

static void ring(void)
{
	if (!own_calls_begin())
		return;
	thread_ring(&timer.bell);
	own_calls_end();
}

static void timer_start(uint64_t due_ns, bool is_needed)
{
	uint32_t idle = TIMER_IDLE;
	uint64_t blocked;

	if (due_ns <= atomic_load_explicit(&timer.given_up_ns, memory_order_relaxed) ||
			(!is_needed && ticks_of(due_ns) <= refused_ticks) || thread_is_held() ||
			!own_calls_begin())
		return;
	blocked = thread_block_signals();
	if (may_be_in_handler(blocked, is_needed))
		refused_ticks = is_needed ? refused_ticks : ticks_of(due_ns);
	else if (atomic_compare_exchange_strong_explicit(&timer.state, &idle, TIMER_STARTING,
					memory_order_seq_cst, memory_order_relaxed))
		thread_begin(due_ns, is_needed);
	thread_restore_signals(blocked);
	own_calls_end();
}

static bool may_start(void)
{
	if (runtime.config.timer == TIMER_OFF || own_calls_are_forbidden())
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
		timer_start(due_ns, false);
	else if (is_new && state == TIMER_RUNNING)
		ring();
}

void timer_watch_open(const struct rule *rule, const struct breaker *breaker, uint64_t now_ns)
{
	uint64_t due_ns = breaker_wake_time_ns(breaker, now_ns);

	if (due_ns)
		timer_watch(rule, breaker->cell, due_ns);
}

bool timer_is_running(void)
{
	return atomic_load_explicit(&timer.state, memory_order_seq_cst) != TIMER_IDLE;
}

bool timer_watch_deadlines(uint64_t due_ns)
{
	if (runtime.config.timer == TIMER_OFF || own_calls_are_forbidden())
		return false;
	if (timer_is_running())
		timer_expect(due_ns);
	else
		timer_start(due_ns, true);
	return timer_is_running();
}

void timer_expect(uint64_t due_ns)
{
	if (due_ns && due_ns < atomic_load_explicit(&timer.looks_ns, memory_order_seq_cst))
		ring();
}

void timer_forget(void)
{
	atomic_store_explicit(&timer.is_child, true, memory_order_relaxed);
	for (uint32_t i = 0; i < WATCHED_MAX; i++)
		atomic_store_explicit(&timer.watched[i], 0, memory_order_relaxed);
	atomic_store_explicit(&timer.given_up_ns, 0, memory_order_relaxed);
	refused_ticks = 0;
	atomic_store_explicit(&timer.looks_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&timer.state, TIMER_IDLE, memory_order_relaxed);
}
