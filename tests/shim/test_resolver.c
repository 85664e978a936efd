/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/real.h"
#include "shim/resolver.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "tests/support/sanitized.h"

#define SOON_NS	 30000000ull
#define NEVER_NS 3600000000000ull

/* libc, which answers when it may. */
static struct {
	sem_t begun, may_end;
	_Atomic bool waits;
	_Atomic int calls, ended;
	char host[64], service[16];
	struct addrinfo hints;
	sigset_t blocked;
	int error, system_error;
	pthread_t thread;
} libc;

static void serve(const char *host)
{
	strncpy(libc.host, host, sizeof(libc.host) - 1);
	libc.thread = pthread_self();
	pthread_sigmask(SIG_SETMASK, NULL, &libc.blocked);
	atomic_fetch_add(&libc.calls, 1);
	sem_post(&libc.begun);
	if (atomic_load(&libc.waits))
		sem_wait(&libc.may_end);
}

static int (*libc_getaddrinfo)(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result);

static int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	int error;

	serve(node);
	strncpy(libc.service, service ? service : "none", sizeof(libc.service) - 1);
	libc.hints = hints ? *hints : (struct addrinfo){.ai_flags = -1};
	errno = libc.system_error;
	error = libc.error ? libc.error : libc_getaddrinfo("10.1.2.3", service, hints, result);
	atomic_fetch_add(&libc.ended, 1);
	return error;
}

static int fake_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size,
		struct hostent **result, int *h_error)
{
	static char *none[] = {NULL};

	serve(name);
	*result = NULL;
	*h_error = libc.error ? libc.error : NETDB_INTERNAL;
	if (libc.error)
		return errno = EAGAIN;
	if (size < 5000)
		return errno = ERANGE;
	*h_error = NETDB_SUCCESS;
	memset(buffer, 'x', 4999);
	buffer[4999] = '\0';
	*entry = (struct hostent){buffer, none, AF_INET, 4, none};
	*result = entry;
	return 0;
}

static const struct rule *rule;

/* Threads of this process as the kernel counts them. */
static unsigned long thread_count(void)
{
	struct stat tasks;

	cr_assert_eq(stat("/proc/self/task", &tasks), 0);
	return tasks.st_nlink - 2;
}

/* The test's own. */
static unsigned long threads_before;

static unsigned long threads_more(void)
{
	return thread_count() - threads_before;
}

static void start_with(const char *text)
{
	char *const environment[] = {(char *)text, NULL};

	config_load(&runtime.config, environment, NULL);
	cr_assert_eq(runtime.config.rule_count, 1, "%s", runtime.config.problems[0].text);
	rule = &runtime.config.rules[0];
	sem_init(&libc.begun, 0, 0);
	sem_init(&libc.may_end, 0, 0);
	libc_getaddrinfo = getaddrinfo;
	runtime.pid = (uint32_t)getpid();
	real();
	real_table.getaddrinfo = fake_getaddrinfo;
	real_table.gethostbyname_r = fake_gethostbyname_r;
	threads_before = thread_count();
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

static void start(void)
{
	start_with("SHUNT_BREAK_N=.test resolve-timeout=1s resolve-pool=2");
}

/* One thread, and one may wait for it; a second thread when that place is taken. */
static void start_queueing(void)
{
	start_with("SHUNT_BREAK_N=.test resolve-timeout=1s resolve-pool=1 resolve-pool-max=2 "
		   "resolve-queue=1 resolve-queue-reject=9");
}

TestSuite(resolver, .init = start, .timeout = 60);

static const struct question question = {QUESTION_LIST, "a.test", "80", NULL, 0};

static enum resolver_end ask_for(uint64_t timeout_ns, struct request_answer *ret)
{
	*ret = (struct request_answer){.result = -1};
	return resolver_ask(rule, &question, 0, clock_now_ns() + timeout_ns, ret);
}

static enum resolver_end ask(uint64_t timeout_ns)
{
	struct request_answer answer;
	enum resolver_end end = ask_for(timeout_ns, &answer);

	if (end == RESOLVER_ANSWERED && answer.list)
		freeaddrinfo(answer.list);
	return end;
}

static void wait_for_threads(unsigned long count)
{
	while (threads_more() != count)
		sched_yield();
}

/* So that no test leaves a thread in libc. */
static void let_all_end(void)
{
	atomic_store(&libc.waits, false);
	for (int i = 0; i < 64; i++)
		sem_post(&libc.may_end);
	while (atomic_load(&libc.ended) < atomic_load(&libc.calls))
		sched_yield();
	thread_hold();
	thread_release();
}

Test(resolver, an_answer_comes_from_a_thread_that_blocks_all_signals)
{
	struct request_answer answer;
	char host[] = "a.test", service[] = "80";
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_family = AF_INET};
	struct question own = {QUESTION_LIST, host, service, &hints, 0};

	cr_assert_eq(resolver_ask(rule, &own, 0, clock_now_ns() + NEVER_NS, &answer),
			RESOLVER_ANSWERED);
	cr_assert_eq(answer.result, 0);
	cr_assert_eq(answer.list->ai_socktype, SOCK_DGRAM);
	cr_assert_null(answer.list->ai_next);
	freeaddrinfo(answer.list);
	cr_assert_str_eq(libc.host, "a.test");
	cr_assert_str_eq(libc.service, "80");
	cr_assert_eq(libc.hints.ai_family, AF_INET);
	cr_assert_not(pthread_equal(libc.thread, pthread_self()));
	cr_assert(sigismember(&libc.blocked, SIGALRM));
	cr_assert(sigismember(&libc.blocked, SIGTERM));
	cr_assert_eq(threads_more(), 1);
}

Test(resolver, no_hints_and_no_service_stay_none)
{
	struct question own = {QUESTION_LIST, "a.test", NULL, NULL, 0};
	struct request_answer answer;

	cr_assert_eq(resolver_ask(rule, &own, 0, clock_now_ns() + NEVER_NS, &answer),
			RESOLVER_ANSWERED);
	freeaddrinfo(answer.list);
	cr_assert_str_eq(libc.service, "none");
	cr_assert_eq(libc.hints.ai_flags, -1);
}

Test(resolver, what_libc_says_of_a_failure_is_handed_on)
{
	struct request_answer answer;

	libc.error = EAI_SYSTEM;
	libc.system_error = EMFILE;
	cr_assert_eq(ask_for(NEVER_NS, &answer), RESOLVER_ANSWERED);
	cr_assert_eq(answer.result, EAI_SYSTEM);
	cr_assert_eq(answer.system_error, EMFILE);
	cr_assert_null(answer.list);
}

Test(resolver, one_thread_is_enough_for_one_question_at_a_time)
{
	for (int i = 0; i < 100; i++)
		cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	cr_assert_eq(atomic_load(&libc.calls), 100);
	cr_assert_eq(threads_more(), 1);
}

Test(resolver, an_idle_thread_ends)
{
	uint64_t began_ns = clock_now_ns();

	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	wait_for_threads(0);
	cr_assert_geq(clock_now_ns() - began_ns, 2000000000ull);
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
}

Test(resolver, a_caller_waits_no_longer_than_he_wanted)
{
	uint64_t began_ns = clock_now_ns();

	atomic_store(&libc.waits, true);
	cr_assert_eq(ask(SOON_NS), RESOLVER_TIMED_OUT);
	cr_assert_geq(clock_now_ns() - began_ns, SOON_NS);
	let_all_end();
}

/* Valgrind and AddressSanitizer see what is not freed, or twice. */
Test(resolver, the_pool_stays_bounded_by_threads_that_libc_keeps)
{
	atomic_store(&libc.waits, true);
	while (atomic_load(&libc.calls) < 2)
		cr_assert_eq(ask(SOON_NS), RESOLVER_TIMED_OUT);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ask(NEVER_NS), RESOLVER_REJECTED);
	cr_assert_eq(threads_more(), 2);
	atomic_store(&libc.waits, false);
	sem_post(&libc.may_end);
	while (atomic_load(&libc.ended) < 1)
		sched_yield();
	/* Reclaimed, as soon as it looks for work. */
	while (ask(NEVER_NS) == RESOLVER_REJECTED)
		sched_yield();
	cr_assert_eq(threads_more(), 2);
	let_all_end();
}

struct caller {
	pthread_t thread;
	uint64_t timeout_ns;
	_Atomic bool has_ended;
	enum resolver_end end;
};

static void *call(void *argument)
{
	struct caller *caller = argument;

	caller->end = ask(caller->timeout_ns);
	atomic_store(&caller->has_ended, true);
	return NULL;
}

static void begin(struct caller *caller, uint64_t timeout_ns)
{
	caller->timeout_ns = timeout_ns;
	cr_assert_eq(pthread_create(&caller->thread, NULL, call, caller), 0);
}

static enum resolver_end finish(struct caller *caller)
{
	pthread_join(caller->thread, NULL);
	return caller->end;
}

/* Whoever of the two comes first waits, and the other one gets a thread beyond core. */
Test(resolver, one_waits_and_the_pool_grows_by_another, .init = start_queueing)
{
	struct caller first = {.timeout_ns = 0}, second = first, third = first;

	atomic_store(&libc.waits, true);
	begin(&first, NEVER_NS);
	sem_wait(&libc.begun);
	cr_assert_eq(threads_more(), 2);
	begin(&second, NEVER_NS);
	begin(&third, NEVER_NS);
	sem_wait(&libc.begun);
	cr_assert_eq(atomic_load(&libc.calls), 2);
	cr_assert_eq(threads_more(), 5);
	cr_assert_eq(ask(NEVER_NS), RESOLVER_REJECTED);
	let_all_end();
	cr_assert_eq(finish(&first), RESOLVER_ANSWERED);
	cr_assert_eq(finish(&second), RESOLVER_ANSWERED);
	cr_assert_eq(finish(&third), RESOLVER_ANSWERED);
}

Test(resolver, the_time_in_the_queue_counts_and_its_place_is_free_again, .init = start_queueing)
{
	struct caller first = {.timeout_ns = 0};

	runtime.config.rules[0].settings.resolve_pool_max = 1;
	atomic_store(&libc.waits, true);
	begin(&first, NEVER_NS);
	sem_wait(&libc.begun);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(ask(SOON_NS), RESOLVER_TIMED_OUT);
	cr_assert_eq(atomic_load(&libc.calls), 1);
	let_all_end();
	cr_assert_eq(finish(&first), RESOLVER_ANSWERED);
	cr_assert_eq(atomic_load(&libc.calls), 1);
}

Test(resolver, many_threads_ask_at_once)
{
	struct caller callers[50] = {{.timeout_ns = 0}};
	int answered = 0, rejected = 0;

	for (size_t i = 0; i < 50; i++)
		begin(&callers[i], NEVER_NS);
	for (size_t i = 0; i < 50; i++) {
		enum resolver_end end = finish(&callers[i]);

		answered += end == RESOLVER_ANSWERED;
		rejected += end == RESOLVER_REJECTED;
	}
	cr_assert_eq(answered + rejected, 50);
	cr_assert_eq(answered, atomic_load(&libc.calls));
	cr_assert_leq(threads_more(), 2);
}

static sigjmp_buf leave_to;
static _Atomic bool has_left;

static void jump(int number)
{
	siglongjmp(leave_to, number);
}

static void *jump_out_of_an_ask(void *nothing)
{
	signal(SIGUSR1, jump);
	if (!sigsetjmp(leave_to, 1))
		ask(NEVER_NS);
	return nothing;
}

Test(resolver, a_caller_may_leave_by_longjmp)
{
	pthread_t thread;

	atomic_store(&libc.waits, true);
	cr_assert_eq(pthread_create(&thread, NULL, jump_out_of_an_ask, NULL), 0);
	sem_wait(&libc.begun);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	let_all_end();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
}

static void *jump_and_ask_again(void *nothing)
{
	jump_out_of_an_ask(nothing);
	resolver_leave();
	resolver_leave();
	atomic_store(&libc.waits, false);
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	return nothing;
}

Test(resolver, what_was_left_is_nobodys)
{
	pthread_t thread;

	atomic_store(&libc.waits, true);
	cr_assert_eq(pthread_create(&thread, NULL, jump_and_ask_again, NULL), 0);
	sem_wait(&libc.begun);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	let_all_end();
}

static void *ask_and_be_cancelled(void *nothing)
{
	ask(NEVER_NS);
	return nothing;
}

Test(resolver, a_caller_can_be_cancelled_where_he_waits)
{
	void *result = NULL;
	pthread_t thread;

	SKIP_IF_SANITIZED("it takes the stack of a cancelled thread for overrun");
	atomic_store(&libc.waits, true);
	cr_assert_eq(pthread_create(&thread, NULL, ask_and_be_cancelled, NULL), 0);
	sem_wait(&libc.begun);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	cr_assert_eq(result, PTHREAD_CANCELED);
	let_all_end();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
}

static void *ask_with_cancellation_disabled(void *ret_type)
{
	int state, type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, ret_type);
	return NULL;
}

Test(resolver, or_not_where_he_does_not_want_that)
{
	pthread_t thread;
	void *result = &thread;
	int type = -1;

	cr_assert_eq(pthread_create(&thread, NULL, ask_with_cancellation_disabled, &type), 0);
	pthread_join(thread, &result);
	cr_assert_null(result);
	cr_assert_eq(type, PTHREAD_CANCEL_DEFERRED);
}

/* What a hook would do in a handler that has a stack of its own. */
static void leave_on_another_stack(int number)
{
	(void)number;
	resolver_leave();
	atomic_store(&has_left, true);
}

static void *wait_with_a_signal_stack(void *caller)
{
	static char memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

	sigaltstack(&stack, NULL);
	return call(caller);
}

Test(resolver, a_handler_on_another_stack_leaves_nothing)
{
	struct sigaction action = {.sa_handler = leave_on_another_stack, .sa_flags = SA_ONSTACK};
	struct caller caller = {.timeout_ns = NEVER_NS};

	SKIP_IF_SANITIZED("it takes a thread's signal stack for its own");
	sigaction(SIGUSR1, &action, NULL);
	atomic_store(&libc.waits, true);
	cr_assert_eq(pthread_create(&caller.thread, NULL, wait_with_a_signal_stack, &caller), 0);
	sem_wait(&libc.begun);
	pthread_kill(caller.thread, SIGUSR1);
	while (!atomic_load(&has_left))
		sched_yield();
	cr_assert_not(atomic_load(&caller.has_ended));
	let_all_end();
	cr_assert_eq(finish(&caller), RESOLVER_ANSWERED);
}

static void nothing_happens(int number)
{
	(void)number;
}

Test(resolver, a_signal_does_not_end_the_wait)
{
	struct sigaction action = {.sa_handler = nothing_happens};
	struct caller caller = {.timeout_ns = 0};

	sigaction(SIGUSR1, &action, NULL);
	atomic_store(&libc.waits, true);
	begin(&caller, NEVER_NS);
	sem_wait(&libc.begun);
	for (int i = 0; i < 20; i++) {
		pthread_kill(caller.thread, SIGUSR1);
		sched_yield();
	}
	cr_assert_not(atomic_load(&caller.has_ended));
	let_all_end();
	cr_assert_eq(finish(&caller), RESOLVER_ANSWERED);
}

static void forked(void)
{
	runtime_forked();
	thread_forget();
	resolver_forked();
}

Test(resolver, a_forked_child_makes_its_own_pool)
{
	struct caller caller = {.timeout_ns = 0};
	int status;
	pid_t child;

	atomic_store(&libc.waits, true);
	begin(&caller, NEVER_NS);
	sem_wait(&libc.begun);
	child = fork();
	if (child == 0) {
		forked();
		atomic_store(&libc.waits, false);
		_exit(ask(NEVER_NS) == RESOLVER_ANSWERED ? (int)thread_count() : 100);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(WEXITSTATUS(status), 2);
	let_all_end();
	cr_assert_eq(finish(&caller), RESOLVER_ANSWERED);
}

Test(resolver, where_no_thread_may_be_the_caller_asks_himself)
{
	thread_hold();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
	thread_release();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	runtime.config.timer = TIMER_OFF;
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
	runtime.config.timer = TIMER_AUTO;
	own_calls_forbid();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
	cr_assert_eq(atomic_load(&libc.calls), 1);
}

static void handle(int number)
{
	(void)number;
}

/* A filter does not wait for him, who is not counted, and he does not wait on under it. */
Test(resolver, a_caller_who_wakes_under_a_filter_asks_himself)
{
	struct sigaction action = {.sa_handler = handle};
	struct caller caller = {.timeout_ns = 0};

	sigaction(SIGUSR1, &action, NULL);
	atomic_store(&libc.waits, true);
	begin(&caller, NEVER_NS);
	sem_wait(&libc.begun);
	while (atomic_load(&own_calls.calling))
		sched_yield();
	own_calls_forbid();
	while (!atomic_load(&caller.has_ended)) {
		pthread_kill(caller.thread, SIGUSR1);
		sched_yield();
	}
	cr_assert_eq(finish(&caller), RESOLVER_UNAVAILABLE);
	let_all_end();
}

Test(resolver, a_hold_ends_idle_threads)
{
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	thread_hold();
	cr_assert_eq(threads_more(), 0);
	thread_release();
}

Test(resolver, a_thread_that_cannot_be_made_costs_no_place)
{
	for (int i = 0; i < 10; i++) {
		thread_hold();
		cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
		thread_release();
	}
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
}

/* Made by clone(), out of sight. */
Test(resolver, in_a_process_that_the_library_does_not_know_the_caller_asks_himself)
{
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	runtime.pid++;
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
}

Test(resolver, in_other_namespaces_the_caller_asks_himself)
{
	resolver_moved();
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
}

Test(resolver, with_a_resolver_state_of_his_own_the_caller_asks_himself)
{
	cr_assert_eq(res_init(), 0);
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	_res.ndots++;
	cr_assert_eq(ask(NEVER_NS), RESOLVER_UNAVAILABLE);
	_res.ndots--;
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
}

Test(resolver, with_a_locale_of_his_own_the_caller_asks_himself_for_foreign_names)
{
	struct addrinfo hints = {.ai_flags = AI_IDN};
	struct question own = {QUESTION_LIST, "a.test", NULL, &hints, 0};
	struct request_answer answer;
	locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	uselocale(locale);
	cr_assert_eq(ask(NEVER_NS), RESOLVER_ANSWERED);
	cr_assert_eq(resolver_ask(rule, &own, 0, clock_now_ns() + NEVER_NS, &answer),
			RESOLVER_UNAVAILABLE);
	uselocale(LC_GLOBAL_LOCALE);
	cr_assert_eq(resolver_ask(rule, &own, 0, clock_now_ns() + NEVER_NS, &answer),
			RESOLVER_ANSWERED);
	freeaddrinfo(answer.list);
	freelocale(locale);
}

static struct request_answer ask_host(size_t size)
{
	struct question host = {.kind = QUESTION_HOST, .host = "h.test"};
	struct request_answer answer = {.h_error = 7};

	cr_assert_eq(resolver_ask(rule, &host, size, clock_now_ns() + NEVER_NS, &answer),
			RESOLVER_ANSWERED);
	return answer;
}

Test(resolver, a_host_gets_a_buffer_of_the_callers_size)
{
	struct request_answer answer = ask_host(4999);

	cr_assert_eq(answer.result, ERANGE);
	cr_assert_eq(answer.h_error, NETDB_INTERNAL);
	cr_assert_null(answer.entry);
	free(answer.memory);
	answer = ask_host(5000);
	cr_assert_eq(answer.result, 0);
	cr_assert_eq(strlen(answer.entry->h_name), 4999);
	free(answer.memory);
	cr_assert_eq(atomic_load(&libc.calls), 2);
}

Test(resolver, or_as_large_a_one_as_it_needs)
{
	struct request_answer answer = ask_host(REQUEST_ANY_SIZE);

	cr_assert_eq(strlen(answer.entry->h_name), 4999);
	free(answer.memory);
	libc.error = HOST_NOT_FOUND;
	answer = ask_host(REQUEST_ANY_SIZE);
	cr_assert_eq(answer.h_error, HOST_NOT_FOUND);
	cr_assert_null(answer.entry);
	free(answer.memory);
}
