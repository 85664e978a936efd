/* SPDX-License-Identifier: MIT */
#include "shim/bound.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/own_call.h"
#include "shim/signals.h"

#define MS_NS   1000000ull
#define HOUR_NS 3600000000000ull

static int ends[2];

static void start(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

TestSuite(bound, .init = start, .timeout = 60);

static long option_ms(int option)
{
	struct timeval time;
	socklen_t size = sizeof(time);

	cr_assert_eq(getsockopt(ends[0], SOL_SOCKET, option, &time, &size), 0);
	return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static void set_option(int option, long ms)
{
	struct timeval time = { ms / 1000, ms % 1000 * 1000 };

	cr_assert_eq(setsockopt(ends[0], SOL_SOCKET, option, &time, sizeof(time)), 0);
}

Test(bound, a_blocking_recv_returns_in_time)
{
	struct bound bound = { 0 };
	char byte;

	bound_begin(&bound, ends[0], SO_RCVTIMEO, 20 * MS_NS);
	cr_assert(bound_is_set(&bound));
	cr_expect_eq(recv(ends[0], &byte, 1, 0), -1);
	cr_expect_eq(errno, EAGAIN);
	bound_end(&bound, ends[0]);
	cr_expect_eq(option_ms(SO_RCVTIMEO), 0);
}

Test(bound, a_wait_ends_with_data_or_in_time_and_sets_nothing)
{
	errno = EDOM;
	cr_expect_eq(bound_await(ends[0], 20 * MS_NS), BOUND_AGAIN);
	cr_assert_eq(send(ends[1], "data", 4, 0), 4);
	cr_expect_eq(bound_await(ends[0], HOUR_NS), BOUND_READY);
	cr_expect_eq(errno, EDOM);
	cr_expect_eq(option_ms(SO_RCVTIMEO), 0);
}

Test(bound, a_wait_ends_with_the_peer)
{
	close(ends[1]);
	cr_expect_eq(bound_await(ends[0], HOUR_NS), BOUND_READY);
}

/* What waits here would wait an hour. */
Test(bound, nobody_waits_for_what_does_not_wait)
{
	set_option(SO_RCVTIMEO, 100);
	cr_expect_eq(bound_await(ends[0], HOUR_NS), BOUND_READY, "it is shorter");
	set_option(SO_RCVTIMEO, 0);
	cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(bound_await(ends[0], HOUR_NS), BOUND_READY);
	cr_expect_eq(bound_await(-1, HOUR_NS), BOUND_READY);
	cr_assert_eq(fcntl(ends[0], F_SETFL, 0), 0);
	own_calls_forbid();
	cr_expect_eq(bound_await(ends[0], HOUR_NS), BOUND_READY, "a filter was seen");
}

Test(bound, the_programs_longer_time_is_put_back)
{
	struct bound bound = { 0 };

	set_option(SO_SNDTIMEO, 4000);
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect_geq(option_ms(SO_SNDTIMEO), 300);
	cr_expect_lt(option_ms(SO_SNDTIMEO), 400);
	bound_end(&bound, ends[0]);
	cr_expect_eq(option_ms(SO_SNDTIMEO), 4000);
}

Test(bound, the_programs_shorter_time_stays)
{
	struct bound bound = { 0 };

	set_option(SO_SNDTIMEO, 100);
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect_not(bound_is_set(&bound));
	cr_expect_eq(option_ms(SO_SNDTIMEO), 100);
	bound_end(&bound, ends[0]);
	cr_expect_eq(option_ms(SO_SNDTIMEO), 100);
}

Test(bound, what_does_not_block_needs_none)
{
	struct bound bound = { 0 };

	cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect_not(bound_is_set(&bound));
	cr_expect_eq(option_ms(SO_SNDTIMEO), 0);
}

Test(bound, what_is_no_socket_is_left_alone)
{
	struct bound bound = { 0 };
	int fd = open("/dev/null", O_RDONLY);

	errno = EDOM;
	bound_begin(&bound, fd, SO_RCVTIMEO, MS_NS);
	cr_expect_not(bound_is_set(&bound));
	bound_begin(&bound, -1, SO_RCVTIMEO, MS_NS);
	cr_expect_not(bound_is_set(&bound));
	cr_expect_eq(errno, EDOM);
}

static void handle(int number)
{
	(void)number;
}

static void install(int number, int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	cr_assert_eq(sigaction(number, &action, NULL), 0);
}

/* Criterion's own process has handlers: only these are asked about. */
#define OURS (1ull << (SIGUSR1 - 1) | 1ull << (SIGUSR2 - 1) | 1ull << (SIGWINCH - 1))

Test(bound, handlers_are_known_by_what_they_interrupt)
{
	cr_expect_eq(signals_handled(OURS), 0);
	install(SIGUSR1, SA_RESTART);
	cr_expect_eq(signals_handled(OURS), 1ull << (SIGUSR1 - 1));
	cr_expect_eq(signals_interrupting(OURS), 0);
	install(SIGUSR2, 0);
	cr_expect_eq(signals_handled(OURS), 1ull << (SIGUSR1 - 1) | 1ull << (SIGUSR2 - 1));
	cr_expect_eq(signals_interrupting(OURS), 1ull << (SIGUSR2 - 1));
	signal(SIGUSR2, SIG_IGN);
	cr_expect_eq(signals_interrupting(OURS), 0);
}

static void forget_handlers(void)
{
	for (int number = 1; number < NSIG; number++)
		if (number != SIGKILL && number != SIGSTOP)
			signal(number, SIG_DFL);
}

Test(bound, a_call_goes_on_where_handlers_ask_for_it)
{
	struct bound bound = { 0 };

	forget_handlers();
	install(SIGUSR1, SA_RESTART);
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect(bound_goes_on(&bound, ends[0], 100 * MS_NS));
	cr_expect_lt(option_ms(SO_SNDTIMEO), 200, "the rest of the time");
	install(SIGSEGV, 0);
	cr_expect(bound_goes_on(&bound, ends[0], 100 * MS_NS), "a crash is no interruption");
	install(SIGUSR2, 0);
	cr_expect_not(bound_goes_on(&bound, ends[0], 100 * MS_NS));
}

Test(bound, a_call_that_the_program_bounded_never_goes_on)
{
	struct bound bound = { 0 };

	forget_handlers();
	set_option(SO_SNDTIMEO, 4000);
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect_not(bound_goes_on(&bound, ends[0], 100 * MS_NS));
}

Test(bound, under_a_filter_nothing_is_set)
{
	struct bound bound = { 0 };

	own_calls_forbid();
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	cr_expect_not(bound_is_set(&bound));
	cr_expect_eq(option_ms(SO_SNDTIMEO), 0);
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
}

Test(bound, where_a_filter_comes_meanwhile_nothing_is_put_back_nor_asked)
{
	struct bound bound = { 0 };

	forget_handlers();
	bound_begin(&bound, ends[0], SO_SNDTIMEO, 300 * MS_NS);
	own_calls_forbid();
	cr_expect_not(bound_goes_on(&bound, ends[0], 100 * MS_NS));
	bound_end(&bound, ends[0]);
	cr_expect_geq(option_ms(SO_SNDTIMEO), 300);
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
}
