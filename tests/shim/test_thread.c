/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/thread.h"

TestSuite(thread, .timeout = 60);

static _Atomic uint32_t bell, running, ended;
static _Atomic bool leave;

/* What every thread of the library does, with nothing to do. */
static void run(void *nothing)
{
	(void)nothing;
	atomic_fetch_add(&running, 1);
	for (;;) {
		uint32_t seen = atomic_load(&bell);

		if (thread_must_end() || atomic_load(&leave))
			break;
		thread_wait(&bell, seen, 3600000000000ull);
	}
	atomic_fetch_add(&ended, 1);
}

static const struct thread_plan plan = {
		.run = run,
		.bell = &bell,
		.name = "shunt-test",
		.stack_bytes = 65536,
};

static unsigned long thread_count(void)
{
	struct stat tasks;

	cr_assert_eq(stat("/proc/self/task", &tasks), 0);
	return tasks.st_nlink - 2;
}

static void start(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(thread_start(&plan), 0);
	while (atomic_load(&running) < count)
		sched_yield();
}

Test(thread, a_hold_ends_all_of_them_as_the_kernel_sees_it)
{
	unsigned long before = thread_count();

	for (uint32_t round = 1; round <= 10; round++) {
		start(round * 4 - atomic_load(&running));
		errno = EDOM;
		thread_hold();
		cr_assert_eq(thread_count(), before);
		cr_assert_eq(thread_start(&plan), EBUSY);
		thread_release();
		cr_assert_eq(errno, EDOM);
		cr_assert_eq(atomic_load(&ended), round * 4);
	}
}

Test(thread, a_hold_waits_for_one_that_is_only_being_made)
{
	unsigned long before = thread_count();

	for (int round = 0; round < 50; round++) {
		cr_assert_eq(thread_start(&plan), 0);
		thread_hold();
		cr_assert_eq(thread_count(), before);
		thread_release();
	}
}

Test(thread, a_bell_wakes_all_who_sleep_on_it)
{
	start(3);
	atomic_store(&leave, true);
	thread_ring(&bell);
	while (atomic_load(&ended) < 3)
		sched_yield();
}

Test(thread, none_starts_under_a_filter)
{
	own_calls_forbid();
	cr_assert_eq(thread_start(&plan), EBUSY);
}

static void *make_calls(void *is_over)
{
	if (!own_calls_begin())
		return NULL;
	atomic_store(&running, 1);
	while (!own_calls_are_forbidden())
		sched_yield();
	/* Time for whoever does not wait. */
	for (int i = 0; i < 1000; i++)
		sched_yield();
	atomic_store((_Atomic bool *)is_over, true);
	own_calls_end();
	return NULL;
}

Test(thread, who_sets_a_filter_waits_for_calls_that_have_begun)
{
	static _Atomic bool is_over;
	pthread_t thread;

	cr_assert(own_calls_begin());
	cr_assert_eq(pthread_create(&thread, NULL, make_calls, &is_over), 0);
	while (!atomic_load(&running))
		sched_yield();
	runtime_filter_begins();
	cr_assert(atomic_load(&is_over));
	own_calls_end();
	pthread_join(thread, NULL);
}

Test(thread, no_call_begins_while_a_filter_is_being_set)
{
	runtime_filter_begins();
	cr_assert_not(own_calls_begin());
	runtime_filter_begins();
	runtime_filter_ended(false);
	cr_assert_not(own_calls_begin());
	runtime_filter_ended(false);
	cr_assert(own_calls_begin());
	own_calls_end();
	runtime_filter_begins();
	runtime_filter_ended(true);
	cr_assert_not(own_calls_begin());
	cr_assert_eq(atomic_load(&own_calls.calling), 0);
}

Test(thread, there_are_only_so_many)
{
	int error = 0;
	uint32_t count = 0;

	while (!(error = thread_start(&plan)) && count < 1000)
		count++;
	cr_assert_eq(error, EAGAIN);
	cr_assert_eq(count, 256);
	thread_hold();
	thread_release();
	cr_assert_eq(atomic_load(&ended), 256);
	cr_assert_eq(thread_start(&plan), 0);
}

/* Each sleep of this thread takes a millisecond more: twenty thousand of them, twenty seconds. */
static void sleep_long(void)
{
	cr_assert_eq(prctl(PR_SET_TIMERSLACK, 1000000), 0);
}

static void stay(void *nothing)
{
	(void)nothing;
	while (!atomic_load(&leave))
		usleep(1000);
	atomic_fetch_add(&ended, 1);
}

Test(thread, a_hold_waits_for_a_second_of_the_clock)
{
	struct thread_plan staying = plan;
	uint64_t began_ns;

	staying.run = stay;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(thread_start(&staying), 0);
	sleep_long();
	began_ns = clock_now_ns();
	thread_hold();
	cr_expect_geq(clock_now_ns() - began_ns, 1000000000ull);
	cr_expect_lt(clock_now_ns() - began_ns, 10000000000ull);
	atomic_store(&leave, true);
	thread_release();
	while (atomic_load(&ended) < 3)
		sched_yield();
}

static void *call_long(void *nothing)
{
	cr_assert(own_calls_begin());
	atomic_store(&running, 1);
	stay(nothing);
	own_calls_end();
	return NULL;
}

Test(thread, who_sets_a_filter_waits_for_a_second_of_the_clock)
{
	pthread_t thread;
	uint64_t began_ns;

	cr_assert_eq(pthread_create(&thread, NULL, call_long, NULL), 0);
	while (!atomic_load(&running))
		sched_yield();
	sleep_long();
	began_ns = clock_now_ns();
	own_calls_forbid();
	cr_expect_geq(clock_now_ns() - began_ns, 1000000000ull);
	cr_expect_lt(clock_now_ns() - began_ns, 10000000000ull);
	atomic_store(&leave, true);
	pthread_join(thread, NULL);
}

Test(thread, who_was_stopped_while_he_waited_has_not_waited)
{
	struct own_wait wait = { .until_ns = 1 };

	for (int i = 0; i < 20; i++)
		cr_assert(own_wait_step(&wait));
	while (own_wait_step(&wait))
		;
}

#define LARGE (1024 * 1024)
static _Thread_local char large[LARGE];

static void use_stack_and_large(void *nothing)
{
	volatile char data[60000];

	(void)nothing;
	memset(large, 1, sizeof(large));
	memset((char *)data, 1, sizeof(data));
	atomic_fetch_add(&ended, 1);
}

Test(thread, the_stack_is_what_was_asked_for_beside_thread_local_data)
{
	struct thread_plan wide = plan;

	wide.run = use_stack_and_large;
	cr_assert_eq(thread_start(&wide), 0);
	while (!atomic_load(&ended))
		sched_yield();
}

static void look_at_signals(void *ret_blocked)
{
	pthread_sigmask(SIG_SETMASK, NULL, ret_blocked);
	atomic_fetch_add(&ended, 1);
}

Test(thread, it_blocks_all_signals_and_its_maker_none)
{
	sigset_t blocked, mine;
	struct thread_plan looking = plan;

	sigemptyset(&blocked);
	looking.run = look_at_signals;
	looking.argument = &blocked;
	cr_assert_eq(thread_start(&looking), 0);
	while (!atomic_load(&ended))
		sched_yield();
	for (int number = 1; number < 32; number++)
		cr_assert(number == SIGKILL || number == SIGSTOP || sigismember(&blocked, number));
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	cr_assert(sigisemptyset(&mine));
}

Test(thread, signals_are_blocked_and_as_before_again)
{
	uint64_t before = thread_block_signals();

	cr_assert(thread_blocks_signals());
	thread_restore_signals(before);
	cr_assert_not(thread_blocks_signals());
}

Test(thread, a_forked_child_has_none_and_may_start_its_own)
{
	int status;
	pid_t child;

	start(2);
	child = fork();
	if (child == 0) {
		thread_forget();
		atomic_store(&running, 0);
		start(1);
		thread_hold();
		_exit(thread_count() == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

static void exit_handler(void)
{
	/* On a thread of the library: a hold of the program's own must not wait for itself. */
	thread_hold();
	_exit(42);
}

Test(thread, several_of_them_do_not_keep_a_program_alive_whose_main_has_left)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		atexit(exit_handler);
		start(3);
		pthread_exit(NULL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 42);
}

static bool are_signals_blocked(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, SIGTERM);
}

Test(thread, a_lock_is_held_without_signals)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint64_t signals;

	cr_assert(thread_lock(&mutex, &signals));
	cr_expect(are_signals_blocked());
	cr_expect_eq(atomic_load(&own_calls.calling), 1);
	thread_unlock(&mutex, signals);
	cr_expect_not(are_signals_blocked());
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
	cr_expect_eq(pthread_mutex_trylock(&mutex), 0, "it is free");
}

Test(thread, under_a_filter_a_lock_is_only_tried)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint64_t signals, again;

	own_calls_forbid();
	cr_assert(thread_lock(&mutex, &signals));
	cr_expect_not(are_signals_blocked(), "that would be a call");
	cr_expect_not(thread_lock(&mutex, &again));
	thread_unlock(&mutex, signals);
	cr_expect_eq(pthread_mutex_trylock(&mutex), 0, "it is free");
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
}
