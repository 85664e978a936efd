/* SPDX-License-Identifier: MIT */
/* Times are compared in one direction only: nothing ends before it is due. */
#include "faults.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "shim/arrival.h"
#include "shim/attempt.h"

int hook_epoll_ctl(int set, int operation, int fd, struct epoll_event *event);
int hook_epoll_wait(int set, struct epoll_event *events, int count, int timeout);
ssize_t hook_sendto(int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length);
int hook_prctl(int option, ...);
int hook_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int hook_poll(struct pollfd *entries, nfds_t count, int timeout);

static void open_stream(void)
{
	faults_open(SOCK_STREAM);
}

TestSuite(inject_connect, .init = open_stream, .timeout = 60);

static int error_of_connect(int fd)
{
	return connect_fd(fd) ? errno : 0;
}

static int so_error(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);

	cr_assert_eq(hook_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	return error;
}

Test(inject_connect, a_refused_connect_sends_nothing)
{
	faults_start("fault A = 127.0.0.1:PORT refuse\n");
	cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	cr_expect_eq(error_of_connect(socket_new(SOCK_NONBLOCK)), ECONNREFUSED);
	cr_expect_eq(injected(0), 2);
	real()->fcntl(listener, F_SETFL, O_NONBLOCK);
	cr_expect_lt(real()->accept(listener, NULL, NULL), 0);
}

Test(inject_connect, the_first_of_two_that_strike_wins)
{
	faults_start("fault A = 127.0.0.1:PORT unreachable\nfault B = 127.0.0.1:PORT refuse\n");
	cr_expect_eq(error_of_connect(socket_new(0)), EHOSTUNREACH);
	cr_expect_eq(injected(0), 1);
	cr_expect_eq(injected(1), 0);
	cr_expect_eq(suppressed(1, FAULT_IMPOSSIBLE), 1);
}

Test(inject_connect, connections_are_numbered)
{
	faults_start("fault A = 127.0.0.1:PORT refuse calls=2..3\n");
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_eq(suppressed(0, FAULT_BY_NUMBER), 2);
}

Test(inject_connect, an_attempt_on_the_same_socket_is_another)
{
	int fd;

	faults_start("fault A = 127.0.0.1:PORT refuse calls=1\n");
	fd = socket_new(0);
	cr_expect_eq(error_of_connect(fd), ECONNREFUSED);
	cr_expect_eq(error_of_connect(fd), 0);
}

Test(inject_connect, a_host_that_no_rule_names_is_left_alone)
{
	faults_start("fault A = 127.0.0.1:1 refuse\n");
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_null(fd_table_find(socket_new(0)));
	cr_expect_eq(injected(0), 0);
}

Test(inject_connect, an_excluded_target_is_left_alone_by_all_rules)
{
	faults_start("fault A = any refuse\nfault B = ^127.0.0.1:PORT\n");
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
}

Test(inject_connect, a_program_that_only_watches_is_told_and_nothing_more)
{
	faults_open(SOCK_STREAM);
	runtime.observe = true;
	faults_start("fault A = 127.0.0.1:PORT refuse\n");
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_eq(injected(0), 0);
	cr_expect_eq(suppressed(0, FAULT_BY_MODE), 1);
}

Test(inject_connect, a_blocking_connect_comes_late)
{
	uint64_t began_ns;

	faults_start("fault A = 127.0.0.1:PORT latency=40ms\nfault B = any latency=20ms\n");
	began_ns = clock_now_ns();
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_geq(clock_now_ns() - began_ns, 60 * MS_NS, "delays add up");
}

Test(inject_connect, its_own_timeout_is_shorter)
{
	struct timeval timeout = { .tv_usec = 20000 };
	int fd;

	faults_start("fault A = 127.0.0.1:PORT latency=1h\n");
	fd = socket_new(0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
}

Test(inject_connect, an_attempt_that_does_not_block_is_under_way_until_it_is_due)
{
	struct sockaddr_in peer;
	socklen_t length = sizeof(peer);
	char byte;
	int fd;

	faults_start("fault A = 127.0.0.1:PORT latency=1h\n");
	fd = socket_new(SOCK_NONBLOCK);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	cr_expect_eq(error_of_connect(fd), EALREADY);
	cr_expect_eq(so_error(fd), 0);
	cr_expect_lt(hook_send(fd, "x", 1, 0), 0);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_lt(hook_recv(fd, &byte, 1, 0), 0);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_lt(hook_getpeername(fd, (struct sockaddr *)&peer, &length), 0);
	cr_expect_eq(errno, ENOTCONN);
	/* The kernel knows nothing of it. */
	cr_expect_geq(real()->accept(listener, NULL, NULL), 0);
}

static void wait_for(int fd, short events, uint64_t due_ns)
{
	struct pollfd entry = { .fd = fd, .events = events };

	cr_assert_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_geq(clock_now_ns(), due_ns);
}

Test(inject_connect, and_then_it_is_established)
{
	uint64_t began_ns = clock_now_ns();
	int fd;

	faults_start("fault A = 127.0.0.1:PORT latency=50ms\n");
	fd = socket_new(SOCK_NONBLOCK);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	wait_for(fd, POLLOUT, began_ns + 50 * MS_NS);
	cr_expect_eq(so_error(fd), 0);
	cr_expect_eq(hook_send(fd, "x", 1, 0), 1);
}

Test(inject_connect, one_that_times_out_never_connects)
{
	uint64_t began_ns = clock_now_ns();
	int fd;

	faults_start("fault A = 127.0.0.1:PORT timeout=50ms\n");
	fd = socket_new(SOCK_NONBLOCK);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	cr_expect_eq(so_error(fd), 0);
	wait_for(fd, POLLOUT, began_ns + 50 * MS_NS);
	cr_expect_eq(so_error(fd), ETIMEDOUT);
	cr_expect_eq(so_error(fd), 0, "an error is told once");
	real()->fcntl(listener, F_SETFL, O_NONBLOCK);
	cr_expect_lt(real()->accept(listener, NULL, NULL), 0);
}

Test(inject_connect, a_real_failure_comes_as_late)
{
	uint64_t began_ns = clock_now_ns();
	int fd;

	faults_start("fault A = 127.0.0.1:PORT latency=50ms\n");
	real()->close(listener);
	fd = socket_new(SOCK_NONBLOCK);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	wait_for(fd, POLLOUT, began_ns + 50 * MS_NS);
	cr_expect_eq(so_error(fd), ECONNREFUSED);
}

Test(inject_connect, open_connections_are_counted)
{
	int fd;

	faults_start("fault A = 127.0.0.1:PORT maxconn=1\n");
	fd = socket_new(0);
	cr_expect_eq(error_of_connect(fd), 0);
	cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	hook_close(fd);
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
}

Test(inject_connect, a_breaker_sees_a_failure_and_an_injected_one)
{
	struct address address;
	struct endpoint endpoint = { .address = &address };
	struct cell *cell;

	faults_start("break B = 127.0.0.1:PORT volume=2 sleep=1h\n"
		     "fault A = 127.0.0.1:PORT refuse\n");
	endpoint.port = ntohs(listener_address.sin_port);
	cr_assert(address_parse("127.0.0.1", &address));
	cell = runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			NULL);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	cr_expect_eq(atomic_load(&cell->totals[CELL_TOTAL_failure]), 2);
	cr_expect_eq(atomic_load(&cell->totals[CELL_TOTAL_injected]), 2);
	cr_expect_eq(atomic_load(&cell->totals[CELL_TOTAL_short_circuited]), 3);
}

Test(inject_connect, a_rule_added_by_hand_strikes_until_it_is_cleared)
{
	faults_start("break B = 127.0.0.1:1\n");
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	fault_added("X", "127.0.0.1:PORT refuse");
	cr_expect_eq(error_of_connect(socket_new(0)), ECONNREFUSED);
	cr_expect_eq(fault_table_clear(&runtime.segment->faults, "X", clock_now_ns()), 1);
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
}

/* Whatever a program does that waits for others. */
static void wait_for_nothing(void)
{
	cr_assert_eq(hook_poll(NULL, 0, 0), 0);
}

Test(inject_connect, a_connection_that_no_rule_concerned_is_struck_by_one_that_is_added)
{
	struct sockaddr_in other_address;
	int fd, other, peer, other_listener;
	char answer[16];

	faults_start("break B = 127.0.0.1:1\n");
	other_listener = peer_open(SOCK_STREAM, &other_address);
	cr_assert_eq(real()->listen(other_listener, 1), 0);
	other = socket_new(0);
	cr_assert_eq(hook_connect(other, (struct sockaddr *)&other_address, sizeof(other_address)),
			0);
	fd = connection_new(&peer);
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), 6);
	fault_added("X", "127.0.0.1:PORT reset per=call calls=2");
	wait_for_nothing();
	cr_expect_null(fd_table_find(other));
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), 6);
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(injected(0), 1);
}

Test(inject_connect, and_one_whose_timeout_was_set_when_it_was_there)
{
	struct timeval timeout = { .tv_sec = 60 };
	char answer[16];
	int fd, peer;

	faults_start("break B = 127.0.0.1:1\n");
	fd = connection_new(&peer);
	cr_assert_eq(hook_setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
	cr_assert_not_null(fd_table_find(fd));
	fault_added("X", "127.0.0.1:PORT reset per=call calls=2");
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), 6);
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), -1);
	cr_expect_eq(injected(0), 1);
}

Test(inject_connect, and_one_that_is_used_while_rules_are_read)
{
	char answer[16];
	int fd, peer, tracked, tracked_peer;

	faults_start("fault A = 127.0.0.1:PORT latency=1ms calls=1\n");
	tracked = connection_new(&tracked_peer);
	fault_rules.rules[0].fault.target.port_low = 1;
	fault_rules.rules[0].fault.target.port_high = 1;
	fd = connection_new(&peer);
	cr_assert_null(fd_table_find(fd));
	fault_added("X", "127.0.0.1:PORT reset per=call");
	/* Whoever sends on a connection that is known sees the change first. */
	exchange_on(tracked, tracked_peer, answer, sizeof(answer));
	cr_expect_not_null(fd_table_find(fd));
	cr_expect_eq(exchange_on(fd, peer, answer, sizeof(answer)), -1);
}

Test(inject_connect, a_socket_that_has_yet_to_connect_is_left_alone)
{
	int fd;

	faults_start("break B = 127.0.0.1:1\n");
	fd = socket_new(0);
	fault_added("X", "127.0.0.1:PORT refuse");
	wait_for_nothing();
	cr_expect_null(fd_table_find(fd));
	cr_expect_eq(error_of_connect(fd), ECONNREFUSED);
}

Test(inject_connect, what_never_struck_is_counted_at_the_end)
{
	int peer;

	faults_start("fault A = 127.0.0.1:PORT reset=64KB\n");
	connection_new(&peer);
	cr_expect_eq(suppressed(0, FAULT_UNREACHED), 0);
	inject_exit();
	inject_exit();
	cr_expect_eq(suppressed(0, FAULT_UNREACHED), 1);
}

static void limit_time(int fd, int option, int ms)
{
	struct timeval time = { .tv_usec = ms * 1000 };

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time)), 0);
}

Test(inject_connect, a_blocking_attempt_that_ran_out_of_time_succeeds_when_it_is_due)
{
	uint64_t began_ns = clock_now_ns();
	int fd, error;

	faults_start("fault A = 127.0.0.1:PORT latency=300ms\n");
	fd = socket_new(0);
	limit_time(fd, SO_SNDTIMEO, 20);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	while ((error = error_of_connect(fd)) == EALREADY)
		;
	cr_expect_eq(error, 0, "%s", strerror(error));
	cr_expect_geq(clock_now_ns() - began_ns, 300 * MS_NS);
	cr_expect_eq(error_of_connect(fd), EISCONN);
}

static void *resets_one(void *unused)
{
	struct linger at_once = { .l_onoff = 1 };
	int peer = real()->accept(listener, NULL, NULL);

	setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	real()->close(peer);
	return unused;
}

Test(inject_connect, a_peer_that_resets_at_once_does_not_end_a_delay)
{
	uint64_t began_ns;
	pthread_t thread;

	faults_start("fault A = 127.0.0.1:PORT latency=200ms\n");
	pthread_create(&thread, NULL, resets_one, NULL);
	began_ns = clock_now_ns();
	cr_expect_eq(error_of_connect(socket_new(0)), 0);
	cr_expect_geq(clock_now_ns() - began_ns, 200 * MS_NS);
	pthread_join(thread, NULL);
}

struct waiter {
	pthread_t thread;
	int set;
	uint64_t told_ns;
};

static void *waits(void *argument)
{
	struct waiter *waiter = argument;
	struct epoll_event event;

	/* Of what is not connecting yet the kernel says that it hung up. */
	do
		cr_assert_eq(real()->epoll_wait(waiter->set, &event, 1, -1), 1);
	while (event.events & EPOLLHUP);
	waiter->told_ns = clock_now_ns();
	return NULL;
}

Test(inject_connect, a_thread_that_waits_already_is_told_when_it_is_due)
{
	faults_start("fault A = 127.0.0.1:PORT latency=20ms\n");
	for (int i = 0; i < 30; i++) {
		struct waiter waiter = { .set = epoll_create1(0) };
		struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
		int fd = socket_new(SOCK_NONBLOCK);
		uint64_t began_ns;

		cr_assert_eq(pthread_create(&waiter.thread, NULL, waits, &waiter), 0);
		began_ns = clock_now_ns();
		cr_assert_eq(real()->epoll_ctl(waiter.set, EPOLL_CTL_ADD, fd, &event), 0);
		cr_expect_eq(error_of_connect(fd), EINPROGRESS);
		pthread_join(waiter.thread, NULL);
		cr_expect_geq(waiter.told_ns - began_ns, 20 * MS_NS);
		hook_close(fd);
		real()->close(waiter.set);
		real()->close(real()->accept(listener, NULL, NULL));
	}
}

/* A socket that is not connected yet is reported as hung up, to who waits for it already. */
Test(inject_connect, who_waits_meanwhile_takes_nothing_of_an_attempt)
{
	struct attempt attempt = { .address = (struct sockaddr *)&listener_address,
		.length = sizeof(listener_address) };
	struct hold_times times;

	faults_start("fault A = 127.0.0.1:PORT latency=1h\n");
	attempt.sight.fd = socket_new(SOCK_NONBLOCK);
	attempt.sight.now_ns = clock_now_ns();
	cr_assert(attempt_begins(&attempt));
	times = arrival_hold(attempt.sight.fd, EPOLLIN | EPOLLOUT | EPOLLHUP,
			attempt.sight.now_ns);
	cr_expect(!times.in_ns && !times.out_ns);
	cr_expect(strike_is(&attempt.sight.slot->strikes[0], STRIKE_ARMED));
	cr_expect_eq(injected(0), 0);
}

Test(inject_connect, a_silence_that_the_kernel_refuses_is_kept_all_the_same)
{
	struct pollfd entry;
	int fd, on = 1;

	faults_start("fault A = 127.0.0.1:PORT hang\n");
	fd = socket_new(SOCK_NONBLOCK);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)), 0);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	entry = (struct pollfd){ .fd = fd, .events = POLLOUT };
	cr_expect_eq(hook_poll(&entry, 1, 100), 0);
	cr_expect_eq(error_of_connect(fd), EALREADY);
	fd = socket_new(0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)), 0);
	limit_time(fd, SO_SNDTIMEO, 100);
	cr_expect_eq(error_of_connect(fd), EINPROGRESS);
	cr_expect_eq(injected(0), 2);
}

Test(inject_connect, what_was_held_of_another_attempt_is_not_held_of_the_next)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct epoll_event event = { .events = EPOLLOUT };
	int set = epoll_create1(0), fd;

	faults_start("fault A = 127.0.0.1:PORT latency=1h\n");
	fd = socket_new(SOCK_NONBLOCK);
	cr_assert_eq(hook_epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	cr_assert_eq(error_of_connect(fd), EINPROGRESS);
	cr_assert_eq(hook_epoll_wait(set, &event, 1, 0), 0);
	cr_assert_eq(hook_connect(fd, &none, sizeof(none)), 0);
	cr_expect_eq(hook_epoll_wait(set, &event, 1, 0), 1, "it is connected to nothing");
}

/* With a SYN that carries data an attempt cannot be late, but silent. */
Test(inject_connect, a_fast_open_hangs_from_its_syn_on)
{
	const char *const rules[] = { "fault A = 127.0.0.1:PORT hang\n",
		"fault A = 127.0.0.1:PORT hang per=call\n" };

	for (int i = 0; i < 2; i++) {
		struct sock_filter filter[16];
		socklen_t size = 16;
		pid_t child = fork();
		int fd, status;

		if (child) {
			cr_assert_eq(waitpid(child, &status, 0), child);
			cr_expect_eq(status, 0);
			continue;
		}
		faults_start(rules[i]);
		fd = socket_new(SOCK_NONBLOCK);
		hook_sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&listener_address,
				sizeof(listener_address));
		_exit(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, filter, &size) || !size ||
				injected(0) != 1);
	}
}

static void *connects(void *unused)
{
	(void)unused;
	connect_fd(socket_new(0));
	return NULL;
}

static void cancel_late_connect(const char *rule, bool is_made)
{
	pthread_t thread;
	void *result;

	faults_start(rule);
	cr_assert_eq(pthread_create(&thread, NULL, connects, NULL), 0);
	if (is_made)
		cr_assert_geq(real()->accept(listener, NULL, NULL), 0);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_expect_eq(result, PTHREAD_CANCELED);
}

Test(inject_connect, a_thread_that_is_late_can_be_cancelled)
{
	cancel_late_connect("fault A = 127.0.0.1:PORT latency=1h\n", true);
}

Test(inject_connect, and_one_whose_attempt_is_never_made)
{
	cancel_late_connect("fault A = 127.0.0.1:PORT timeout=1h\n", false);
}

/* Nobody could give it back when it is due. */
Test(inject_connect, what_is_late_is_let_go_when_a_filter_is_set)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &all };
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	int set, fd;

	faults_start("fault A = 127.0.0.1:PORT latency=1h\n");
	set = real()->epoll_create1(0);
	fd = socket_new(SOCK_NONBLOCK);
	cr_assert_eq(error_of_connect(fd), EINPROGRESS);
	cr_assert_eq(hook_epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	real()->close(real()->accept(listener, NULL, NULL));
	cr_assert_eq(hook_epoll_wait(set, &event, 1, 0), 0);
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(hook_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
	cr_expect_eq(hook_epoll_wait(set, &event, 1, -1), 1);
	cr_expect_eq(so_error(fd), 0);
	cr_expect_eq(hook_send(fd, "x", 1, MSG_NOSIGNAL), 1);
}
