/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/control.h"
#include "core/clock.h"
#include "shim/deadline.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "shim/call.h"
#include "shim/timer.h"
#include "tests/support/sanitized.h"

#define SLEEP "20ms"
#define HOUR_NS 3600000000000ull

static void start(void)
{
	char *const environment[] = { "SHUNT_BREAK_SOON=soon.internal sleep=" SLEEP,
		"SHUNT_BREAK_LATE=late.internal sleep=1h", "SHUNT_TIMER=on", NULL };

	config_load(&runtime.config, environment, NULL);
	cr_assert_eq(runtime.config.rule_count, 2);
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

TestSuite(timer, .init = start, .timeout = 60);

/* Threads of this process as the kernel counts them. */
static unsigned long thread_count(void)
{
	struct stat tasks;

	cr_assert_eq(stat("/proc/self/task", &tasks), 0);
	return tasks.st_nlink - 2;
}

struct watched {
	const struct rule *rule;
	struct breaker breaker;
};

static struct watched open_circuit(const char *name)
{
	struct watched watched = { .rule = NULL };
	struct endpoint endpoint = { .is_lookup = true };
	uint64_t now_ns = clock_now_ns();

	for (size_t i = 0; i < runtime.config.rule_count; i++)
		if (!strcmp(runtime.config.rules[i].name, name))
			watched.rule = &runtime.config.rules[i];
	cr_assert_not_null(watched.rule);
	endpoint.host = watched.rule->target.host;
	watched.breaker = runtime_breaker(
			watched.rule, runtime_cell(watched.rule, CELL_LOOKUP, &endpoint, now_ns,
					NULL));
	control_trip(&watched.breaker, now_ns);
	return watched;
}

static void watch(const struct watched *watched)
{
	timer_watch(watched->rule, watched->breaker.cell,
			breaker_wake_time_ns(&watched->breaker, clock_now_ns()));
}

/* breaker_state() without the passing of time: what the word says. */
static bool is_half_open(const struct watched *watched)
{
	uint64_t word = atomic_load_explicit(
			&watched->breaker.cell->circuit.word, memory_order_acquire);

	return word >> 62 == CIRCUIT_HALF_OPEN;
}

static void wait_for_threads(unsigned long count)
{
	while (thread_count() != count)
		sched_yield();
}

Test(timer, an_open_circuit_becomes_half_open_when_its_sleep_ends)
{
	struct watched soon = open_circuit("SOON");

	watch(&soon);
	while (!is_half_open(&soon))
		sched_yield();
}

Test(timer, the_thread_ends_when_nothing_is_watched_and_comes_back)
{
	unsigned long before = thread_count();

	for (int round = 0; round < 3; round++) {
		struct watched soon = open_circuit("SOON");

		watch(&soon);
		while (!is_half_open(&soon))
			sched_yield();
		wait_for_threads(before);
	}
}

Test(timer, many_watches_are_one_thread)
{
	struct watched late = open_circuit("LATE"), soon = open_circuit("SOON");
	unsigned long before = thread_count();

	for (int i = 0; i < 100; i++)
		watch(&late);
	watch(&soon);
	cr_assert_eq(thread_count(), before + 1);
	while (!is_half_open(&soon))
		sched_yield();
	cr_assert_not(is_half_open(&late));
}

Test(timer, a_circuit_that_closes_is_watched_no_more)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();

	watch(&late);
	control_reset(&late.breaker, clock_now_ns());
	wait_for_threads(before);
}

Test(timer, a_hold_begins_when_the_kernel_has_let_go_of_the_thread)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();

	for (int round = 0; round < 20; round++) {
		watch(&late);
		errno = EDOM;
		thread_hold();
		cr_assert_eq(thread_count(), before);
		thread_release();
		cr_assert_eq(errno, EDOM);
	}
}

Test(timer, holding_what_never_ran_is_nothing)
{
	thread_hold();
	thread_release();
	thread_hold();
	thread_release();
}

Test(timer, none_starts_until_the_last_hold_is_released)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();

	thread_hold();
	thread_hold();
	watch(&late);
	thread_release();
	watch(&late);
	cr_assert_eq(thread_count(), before);
	thread_release();
	watch(&late);
	cr_assert_eq(thread_count(), before + 1);
}

/* The same circuit, as if it had opened later. */
static void watch_later(const struct watched *watched, uint64_t later_ns)
{
	timer_watch(watched->rule, watched->breaker.cell,
			breaker_wake_time_ns(&watched->breaker, clock_now_ns()) + later_ns);
}

Test(timer, a_thread_that_has_a_signal_blocked_starts_none_before_a_later_wake_time)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();
	sigset_t one, mask;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	watch(&late);
	cr_assert_eq(thread_count(), before);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	watch(&late);
	cr_assert_eq(thread_count(), before);
	watch_later(&late, 1000000000);
	cr_assert_eq(thread_count(), before + 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	cr_assert(sigisemptyset(&mask));
}

static void *watch_elsewhere(void *watched)
{
	watch(watched);
	return NULL;
}

Test(timer, where_one_thread_has_a_signal_blocked_another_starts_it)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();
	sigset_t one;
	pthread_t thread;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	watch(&late);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, watch_elsewhere, &late), 0);
	pthread_join(thread, NULL);
	wait_for_threads(before + 1);
}

/* A filter that kills for everything but an end. */
static void allow_exit_only(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

/* Of a child that is to end by _exit(0). */
static void must_live(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(timer, a_thread_whose_signals_are_blocked_makes_one_try_for_a_wake_time)
{
	pid_t child;

	SKIP_IF_SANITIZED("its own system calls are not in the filter");
	child = fork();
	if (child == 0) {
		struct watched late = open_circuit("LATE");
		uint64_t due_ns = breaker_wake_time_ns(&late.breaker, clock_now_ns());
		sigset_t one;

		sigemptyset(&one);
		sigaddset(&one, SIGUSR2);
		pthread_sigmask(SIG_BLOCK, &one, NULL);
		timer_watch(late.rule, late.breaker.cell, due_ns);
		allow_exit_only();
		timer_watch(late.rule, late.breaker.cell, due_ns);
		_exit(0);
	}
	must_live(child);
}

Test(timer, nothing_is_called_while_it_is_held)
{
	pid_t child;

	SKIP_IF_SANITIZED("its own system calls are not in the filter");
	child = fork();
	if (child == 0) {
		struct watched late = open_circuit("LATE");
		uint64_t due_ns = breaker_wake_time_ns(&late.breaker, clock_now_ns());

		thread_hold();
		allow_exit_only();
		timer_watch(late.rule, late.breaker.cell, due_ns);
		_exit(0);
	}
	must_live(child);
}

Test(timer, off_means_never)
{
	struct watched soon = open_circuit("SOON");
	unsigned long before = thread_count();

	runtime.config.timer = TIMER_OFF;
	watch(&soon);
	cr_assert_eq(thread_count(), before);
}

Test(timer, a_single_threaded_program_stays_so)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct watched soon = open_circuit("SOON");

		/* True here, but libc does not look again after a fork. */
		__libc_single_threaded = true;
		runtime.config.timer = TIMER_AUTO;
		watch(&soon);
		_exit(thread_count() == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

static void *wait_for(void *semaphore)
{
	sem_wait(semaphore);
	return NULL;
}

Test(timer, auto_starts_it_where_threads_are)
{
	struct watched late = open_circuit("LATE");
	pthread_t thread;
	sem_t end;
	unsigned long before;

	sem_init(&end, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, wait_for, &end), 0);
	before = thread_count();
	runtime.config.timer = TIMER_AUTO;
	watch(&late);
	cr_assert_eq(thread_count(), before + 1);
	sem_post(&end);
	pthread_join(thread, NULL);
}

Test(timer, auto_starts_none_in_the_child_of_one_that_has_threads)
{
	struct watched late = open_circuit("LATE");
	pthread_t thread;
	sem_t end;
	int status;
	pid_t child;

	sem_init(&end, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, wait_for, &end), 0);
	runtime.config.timer = TIMER_AUTO;
	child = fork();
	if (child == 0) {
		timer_forget();
		watch(&late);
		_exit(thread_count() == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	sem_post(&end);
	pthread_join(thread, NULL);
}

Test(timer, once_a_filter_was_seen_there_is_no_thread)
{
	struct watched late = open_circuit("LATE");
	unsigned long before = thread_count();

	watch(&late);
	own_calls_forbid();
	wait_for_threads(before);
	watch(&late);
	cr_assert_eq(thread_count(), before);
}

Test(timer, a_forked_child_starts_its_own)
{
	struct watched late = open_circuit("LATE");
	int status;
	pid_t child;

	watch(&late);
	child = fork();
	if (child == 0) {
		timer_forget();
		thread_forget();
		unsigned long before = thread_count();

		watch(&late);
		_exit(before == 1 && thread_count() == 2 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

/* 0 while the thread has not got its name yet. */
static unsigned long long blocked_signals_of_timer(void)
{
	char path[64], line[128];
	unsigned long long mask = 0;
	bool is_ours = false;

	for (pid_t id = getpid() + 1; id < getpid() + 1000; id++) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)id);
		FILE *file = fopen(path, "r");

		if (!file)
			continue;
		while (fgets(line, sizeof(line), file)) {
			is_ours |= !strcmp(line, "Name:\tshunt-timer\n");
			sscanf(line, "SigBlk: %llx", &mask);
		}
		fclose(file);
		if (is_ours)
			return mask;
	}
	return 0;
}

Test(timer, the_programs_signals_never_reach_its_thread)
{
	struct watched late = open_circuit("LATE");
	unsigned long long blocked = 0;
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	watch(&late);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < 32; number++)
		cr_assert_eq(sigismember(&before, number), sigismember(&after, number));
	while (!blocked)
		blocked = blocked_signals_of_timer();
	for (int number = 1; number < 32; number++) {
		if (number != SIGKILL && number != SIGSTOP)
			cr_assert(blocked >> (number - 1) & 1, "%d", number);
	}
}

Test(timer, where_no_thread_can_be_made_nothing_happens)
{
	struct rlimit none = { 0, 0 };
	struct watched soon = open_circuit("SOON");
	unsigned long before = thread_count();

	SKIP_IF_SANITIZED("it cannot run without address space");
	/* Address space: RLIMIT_NPROC does not bind root. */
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	errno = EDOM;
	watch(&soon);
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(thread_count(), before);
	thread_hold();
	thread_release();
}

/* An exit handler of the program's, to tell how the process ended. */
static void exit_handler(void)
{
	_exit(42);
}

static void *outlive_main(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	return NULL;
}

Test(timer, a_main_that_left_by_pthread_exit_is_not_kept_alive)
{
	static pthread_t main_thread;
	pthread_t thread;
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct watched late = open_circuit("LATE");

		atexit(exit_handler);
		main_thread = pthread_self();
		pthread_create(&thread, NULL, outlive_main, &main_thread);
		watch(&late);
		pthread_exit(NULL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 42);
}

/* Where there is no /proc to ask; as root or in a user namespace of its own. */
static bool leave_proc(void)
{
	char place[] = "/tmp/shunt-timer-XXXXXX";

	/* Removed at once: it stays the place of this process. */
	if (!mkdtemp(place) || chdir(place) || rmdir(place))
		return false;
	return chroot(".") == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(".") == 0);
}

static void *outlive_main_and_watch(void *main_thread)
{
	struct watched late = open_circuit("LATE");

	pthread_join(*(pthread_t *)main_thread, NULL);
	watch(&late);
	return NULL;
}

/* The child's main has left, and `last` is its last thread. */
static void must_end_without_proc(void *(*last)(void *))
{
	static pthread_t main_thread;
	pthread_t thread;
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct watched late = open_circuit("LATE");

		/* Without which pthread_exit() is not. */
		dlopen("libgcc_s.so.1", RTLD_NOW);
		if (!leave_proc())
			_exit(77);
		watch_later(&late, 1);
		if (!timer_is_running())
			_exit(1);
		atexit(exit_handler);
		main_thread = pthread_self();
		pthread_create(&thread, NULL, last, &main_thread);
		pthread_exit(NULL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		cr_skip_test("no right to another root");
	cr_assert_eq(WEXITSTATUS(status), 42);
}

Test(timer, without_proc_a_main_that_left_is_not_kept_alive)
{
	must_end_without_proc(outlive_main);
}

Test(timer, without_proc_a_last_thread_that_watches_is_not_kept_alive)
{
	must_end_without_proc(outlive_main_and_watch);
}

/* A connection whose calls have deadlines keeps it there. */
static bool watch_deadlines(void)
{
	struct connection *stale, *connection = fd_table_find(5);

	if (!connection) {
		cr_assert(fd_table_start());
		connection = fd_table_connect(5, &stale);
	}
	for (size_t i = 0; i < runtime.config.rule_count; i++)
		runtime.config.rules[i].settings.timeout_ns = HOUR_NS;
	call_set_judge(connection, (struct judge){ &runtime.config.rules[0], NULL }, 0);
	deadline_begin(connection, 5);
	return timer_watch_deadlines(clock_now_ns() + HOUR_NS);
}

Test(timer, deadlines_start_it_in_a_single_threaded_program_too)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		__libc_single_threaded = true;
		runtime.config.timer = TIMER_AUTO;
		_exit(watch_deadlines() && thread_count() == 2 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(timer, deadlines_do_not_start_it_where_it_is_off)
{
	unsigned long before = thread_count();

	runtime.config.timer = TIMER_OFF;
	cr_assert_not(watch_deadlines());
	cr_assert_eq(thread_count(), before);
}

static void block(int number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void handle(int number)
{
	(void)number;
}

Test(timer, deadlines_start_it_where_a_signal_without_a_handler_is_blocked)
{
	unsigned long before = thread_count();

	block(SIGUSR2);
	cr_assert(watch_deadlines());
	cr_assert_eq(thread_count(), before + 1);
}

Test(timer, deadlines_start_it_where_a_signal_is_blocked_as_java_does)
{
	unsigned long before = thread_count();

	signal(SIGQUIT, handle);
	block(SIGQUIT);
	cr_assert(watch_deadlines());
	cr_assert_eq(thread_count(), before + 1);
}

Test(timer, deadlines_do_not_start_it_where_a_handler_may_be_running)
{
	unsigned long before = thread_count();

	signal(SIGUSR2, handle);
	block(SIGUSR2);
	errno = EDOM;
	cr_assert_not(watch_deadlines());
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(thread_count(), before);
}

Test(timer, it_ends_with_the_last_connection_that_has_deadlines)
{
	unsigned long before = thread_count();

	cr_assert(watch_deadlines());
	cr_assert_eq(thread_count(), before + 1);
	fd_table_free(fd_table_set(5, FD_OTHER));
	wait_for_threads(before);
	cr_assert_not(timer_is_running());
}
