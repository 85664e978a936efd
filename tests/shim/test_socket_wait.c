/* SPDX-License-Identifier: MIT */
#include "shim/socket_wait.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/below.h"

#define MS_NS 1000000ull

static int ends[2];
static volatile sig_atomic_t count;

/* Criterion's own process has handlers, and which of them ran cannot be told. */
static void start(void)
{
	for (int number = 1; number < NSIG; number++)
		if (number != SIGKILL && number != SIGSTOP)
			signal(number, SIG_DFL);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	below_start();
	errno = EDOM;
}

TestSuite(socket_wait, .init = start, .timeout = 60);

/* Data comes with the third signal: one of them at least interrupts the wait. */
static void handle(int number)
{
	(void)number;
	if (++count == 3)
		(void)!write(ends[1], "data", 4);
}

static void install(int number, int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

static void interrupt_each_10_ms(int flags)
{
	struct itimerval each = { { 0, 10000 }, { 0, 10000 } };

	install(SIGALRM, flags);
	cr_assert_eq(setitimer(ITIMER_REAL, &each, NULL), 0);
}

Test(socket_wait, it_ends_with_data_and_takes_none)
{
	char data[8];

	cr_assert_eq(send(ends[1], "data", 4, 0), 4);
	cr_expect_eq(socket_wait(ends[0], 0), 0);
	cr_expect_eq(socket_wait(ends[0], clock_now_ns() - 1), 0);
	cr_expect_eq(errno, EDOM);
	cr_expect_eq(recv(ends[0], data, sizeof(data), MSG_DONTWAIT), 4);
}

Test(socket_wait, it_ends_with_the_end_of_the_stream)
{
	cr_assert_eq(shutdown(ends[1], SHUT_WR), 0);
	cr_expect_eq(socket_wait(ends[0], 0), 0);
}

Test(socket_wait, it_ends_at_its_time_as_a_recv_does)
{
	uint64_t end_ns = clock_now_ns() + 20 * MS_NS;

	cr_expect_eq(socket_wait(ends[0], end_ns), EAGAIN);
	cr_expect_geq(clock_now_ns(), end_ns);
	cr_expect_eq(errno, EDOM);
}

Test(socket_wait, a_handler_interrupts_it)
{
	interrupt_each_10_ms(0);
	cr_expect_eq(socket_wait(ends[0], 0), EINTR);
	cr_expect_lt(count, 3);
}

Test(socket_wait, unless_it_asks_for_calls_to_go_on)
{
	interrupt_each_10_ms(SA_RESTART);
	cr_expect_eq(socket_wait(ends[0], 0), 0);
	cr_expect_geq(count, 3);
	cr_expect_eq(errno, EDOM);
}

Test(socket_wait, a_report_of_crashes_interrupts_nothing)
{
	install(SIGSEGV, 0);
	interrupt_each_10_ms(SA_RESTART);
	cr_expect_eq(socket_wait(ends[0], 0), 0);
}

Test(socket_wait, a_time_of_its_own_is_interrupted_all_the_same)
{
	interrupt_each_10_ms(SA_RESTART);
	cr_expect_eq(socket_wait(ends[0], clock_now_ns() + 3600 * CLOCK_SECOND_NS), EINTR);
}

Test(socket_wait, a_sleep_ends_when_it_is_due)
{
	uint64_t due_ns = clock_now_ns() + 20 * MS_NS;

	cr_expect(socket_sleep(ends[0], due_ns, false));
	cr_expect_geq(clock_now_ns(), due_ns);
	cr_expect_eq(errno, EDOM);
}

#define LONG_NS (3600 * CLOCK_SECOND_NS)

Test(socket_wait, a_sleep_ends_with_both_sides_shut)
{
	cr_assert_eq(close(ends[1]), 0);
	cr_expect(socket_sleep(ends[0], clock_now_ns() + LONG_NS, false));
}

Test(socket_wait, a_sleep_is_interrupted_as_a_wait_is)
{
	uint64_t due_ns;

	interrupt_each_10_ms(SA_RESTART);
	due_ns = clock_now_ns() + 40 * MS_NS;
	cr_expect(socket_sleep(-1, due_ns, false));
	cr_expect_geq(clock_now_ns(), due_ns);
	cr_expect_not(socket_sleep(-1, clock_now_ns() + LONG_NS, true));
	interrupt_each_10_ms(0);
	cr_expect_not(socket_sleep(-1, clock_now_ns() + LONG_NS, false));
	cr_expect_eq(errno, EDOM);
}

static void *sleeps(void *unused)
{
	(void)unused;
	socket_sleep(-1, clock_now_ns() + LONG_NS, false);
	return NULL;
}

static void *waits(void *unused)
{
	(void)unused;
	socket_wait(ends[0], 0);
	return NULL;
}

Test(socket_wait, a_thread_that_waits_can_be_cancelled)
{
	void *(*routines[])(void *) = { sleeps, waits };

	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		void *result;

		cr_assert_eq(pthread_create(&thread, NULL, routines[i], NULL), 0);
		cr_assert_eq(pthread_cancel(thread), 0);
		cr_assert_eq(pthread_join(thread, &result), 0);
		cr_expect_eq(result, PTHREAD_CANCELED);
	}
}
