/* SPDX-License-Identifier: MIT */
/* Deadlines by the hooks, on real sockets. The timer's round is made by hand, at a time that is
 * made up, where a test does not say that the thread runs. */
#include "shim/deadline.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/own_call.h"
#include "shim/runtime.h"
#include "shim/timed.h"
#include "shim/timer.h"

#define HOUR_NS   3600000000000ull
#define MINUTE_NS 60000000000ull
#define MS_NS	  1000000ull

__typeof__(socket) hook_socket;
__typeof__(connect) hook_connect;
__typeof__(send) hook_send;
__typeof__(recv) hook_recv;
__typeof__(close) hook_close;
__typeof__(close_range) hook_close_range;
__typeof__(dup) hook_dup;
__typeof__(dup2) hook_dup2;
__typeof__(getsockopt) hook_getsockopt;
__typeof__(poll) hook_poll;
__typeof__(select) hook_select;
__typeof__(shutdown) hook_shutdown;
__typeof__(unshare) hook_unshare;

static int listener;
static struct sockaddr_in peer = { .sin_family = AF_INET };

static void listen_with(int backlog)
{
	socklen_t size = sizeof(peer);

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&peer, sizeof(peer)), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&peer, &size), 0);
	cr_assert_eq(listen(listener, backlog), 0);
}

static void start_with(const char *settings)
{
	char rules[256];

	listen_with(64);
	snprintf(rules, sizeof(rules), "break PAY = 127.0.0.1:%d volume=1000 %s\n",
			ntohs(peer.sin_port), settings);
	config_load_text(&runtime.config, "test", rules, strlen(rules));
	cr_assert_eq(runtime.config.problem_count, 0, "%s", runtime.config.problems[0].text);
	runtime.config.timer = TIMER_OFF;
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cr_assert(fd_table_start());
	atomic_store(&runtime.is_active, true);
}

static void start(void)
{
	start_with("timeout=1h");
}

/* With the thread, and a timeout that a test can wait for. */
static void start_thread(void)
{
	start_with("timeout=60ms");
	runtime.config.timer = TIMER_AUTO;
}

TestSuite(deadline, .init = start, .timeout = 60);
TestSuite(deadline_thread, .init = start_thread, .timeout = 60);
/* Each with a rule of its own. */
TestSuite(deadline_told, .timeout = 60);

static uint64_t total(enum cell_total which)
{
	struct address address;
	struct endpoint endpoint = { .address = &address, .port = ntohs(peer.sin_port) };
	struct cell *cell;

	cr_assert(address_parse("127.0.0.1", &address));
	cell = runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			NULL);
	return atomic_load(&cell->totals[which]);
}

/* What the timer thread does when so much time has passed. */
static uint64_t later(uint64_t ns)
{
	return deadlines_serve(clock_now_ns() + ns);
}

/* The same in steps, as it looks more often at a call that has not got all through yet. */
static void later_by_and_by(void)
{
	uint64_t now_ns = clock_now_ns();

	for (int quarter = 1; quarter <= 6; quarter++)
		deadlines_serve(now_ns + (uint64_t)quarter * HOUR_NS / 4 + MINUTE_NS);
}

static int connect_peer(int fd)
{
	return hook_connect(fd, (struct sockaddr *)&peer, sizeof(peer));
}

static int connected(int flags)
{
	int fd = hook_socket(AF_INET, SOCK_STREAM | flags, 0);

	cr_assert_geq(fd, 0);
	cr_assert(connect_peer(fd) == 0 || errno == EINPROGRESS);
	return fd;
}

static int asking(void)
{
	int fd = connected(0);

	cr_assert_eq(hook_send(fd, "request", 7, 0), 7);
	return fd;
}

/* The server's end of the next connection. */
static int accepted(void)
{
	int fd = accept(listener, NULL, NULL);

	cr_assert_geq(fd, 0);
	return fd;
}

static bool is_readable(int fd, int wait_ms)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	return poll(&entry, 1, wait_ms) == 1;
}

/* linux/tcp.h and netinet/tcp.h do not go together, and the latter's ends before this. */
struct info {
	struct tcp_info known;
	uint64_t rates[2];
	uint64_t acked_bytes, received_bytes;
};

static struct info info_of(int fd)
{
	struct info info = { 0 };
	socklen_t size = sizeof(info);

	cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	return info;
}

static int state_of(int fd)
{
	return info_of(fd).known.tcpi_state;
}

static int so_error(int fd)
{
	int error;
	socklen_t size = sizeof(error);

	cr_assert_eq(hook_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	return error;
}

static void expect_dead(int fd)
{
	char data[8];

	errno = 0;
	cr_expect_eq(hook_recv(fd, data, sizeof(data), MSG_DONTWAIT), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	errno = 0;
	/* SIGPIPE has its default: a real call would end this process. */
	cr_expect_eq(hook_send(fd, "more", 4, 0), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	errno = 0;
	cr_expect_eq(connect_peer(fd), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(so_error(fd), ETIMEDOUT);
	cr_expect_eq(so_error(fd), ETIMEDOUT, "again and again");
}

Test(deadline, a_call_that_awaits_its_answer_ends_when_it_has_passed)
{
	int fd = asking(), server = accepted();
	char data[8];

	later(59 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1, "once");
	expect_dead(fd);
	cr_expect_eq(recv(server, data, sizeof(data), 0), 7);
	cr_expect_eq(recv(server, data, sizeof(data), 0), 0, "the peer is told");
	cr_expect_eq(hook_close(fd), 0);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_expect_eq(total(CELL_TOTAL_cancelled), 0);
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

Test(deadline, an_attempt_ends_when_it_has_passed)
{
	int fillers[2], fd;

	cr_assert_eq(listen(listener, 0), 0);
	for (int i = 0; i < 2; i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fillers[i], (struct sockaddr *)&peer, sizeof(peer));
	}
	fd = hook_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	cr_assert_eq(connect_peer(fd), -1);
	cr_assert_eq(errno, EINPROGRESS);
	cr_assert_eq(state_of(fd), TCP_SYN_SENT);
	later(59 * MINUTE_NS);
	cr_assert_eq(state_of(fd), TCP_SYN_SENT);
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	expect_dead(fd);
	cr_expect_eq(state_of(fd), TCP_CLOSE, "no second attempt");
}

/* The program has not looked yet. */
Test(deadline, an_attempt_that_the_kernel_has_completed_is_not_ended)
{
	int fd = connected(SOCK_NONBLOCK), server = accepted();

	later(2 * HOUR_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(so_error(fd), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	cr_expect(is_readable(server, -1));
}

Test(deadline, an_answer_that_the_program_has_not_read_is_not_late)
{
	int fd = asking(), server = accepted();
	char data[8];

	cr_assert_eq(send(server, "answer", 6, 0), 6);
	cr_assert(is_readable(fd, -1));
	later(2 * HOUR_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), 6);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

static void *receive_all(void *fd)
{
	char data[8];

	return (void *)hook_recv(*(int *)fd, data, sizeof(data), MSG_WAITALL);
}

static bool is_there(int fd, int size)
{
	struct timespec pause = { .tv_nsec = MS_NS };
	int unread = 0;

	while (ioctl(fd, FIONREAD, &unread) == 0 && unread < size)
		nanosleep(&pause, NULL);
	return unread == size;
}

static void wait_until_taken(int fd, uint64_t bytes)
{
	struct timespec pause = { .tv_nsec = MS_NS };
	uint64_t received = 0;
	int unread = 1;

	while (received < bytes || unread) {
		nanosleep(&pause, NULL);
		received = info_of(fd).received_bytes;
		cr_assert_eq(ioctl(fd, FIONREAD, &unread), 0);
	}
}

/* The kernel moves what comes into the caller's buffer, though the call goes on. */
static void expect_part_is_enough(int fd, int server, uint64_t bytes_before)
{
	uint64_t before = total(CELL_TOTAL_success);
	pthread_t thread;
	void *result;

	cr_assert_eq(pthread_create(&thread, NULL, receive_all, &fd), 0);
	cr_assert_eq(send(server, "part", 4, 0), 4);
	wait_until_taken(fd, bytes_before + 4);
	later_by_and_by();
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_assert_eq(send(server, "rest", 4, 0), 4);
	pthread_join(thread, &result);
	cr_expect_eq((ssize_t)result, 8);
	cr_expect_eq(total(CELL_TOTAL_success), before + 1);
}

Test(deadline, an_answer_of_which_a_recv_waits_for_the_rest_is_not_late)
{
	int fd = asking(), server = accepted();

	expect_part_is_enough(fd, server, 0);
	cr_assert_eq(hook_send(fd, "request", 7, 0), 7);
	expect_part_is_enough(fd, server, 8);
}

/* What came before the call is no answer to it. */
Test(deadline, a_later_call_that_awaits_its_answer_ends)
{
	int fd = asking(), server = accepted();
	char data[8];

	cr_assert_eq(send(server, "answer", 6, 0), 6);
	cr_assert_eq(hook_recv(fd, data, sizeof(data), 0), 6);
	cr_assert_eq(hook_send(fd, "request", 7, 0), 7);
	later_by_and_by();
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

static void expect_end_is_no_delay(const char *request, size_t size, bool is_one_way)
{
	int fd = connected(0), server = accepted();
	char data[8];

	cr_assert_eq(hook_send(fd, request, size, 0), (ssize_t)size);
	if (is_one_way)
		cr_assert_eq(hook_shutdown(fd, SHUT_WR), 0);
	cr_assert_eq(recv(server, data, size, MSG_WAITALL), (ssize_t)size);
	close(server);
	cr_assert(is_readable(fd, -1));
	later_by_and_by();
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), 0);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	hook_close(fd);
}

Test(deadline, an_end_of_file_that_the_program_has_not_read_is_not_late)
{
	expect_end_is_no_delay("request", 7, false);
	/* A handshake begins. */
	expect_end_is_no_delay("\26\3\1\0\2\1\0", 7, false);
	cr_expect_eq(total(CELL_TOTAL_failure), 2);
	expect_end_is_no_delay("request", 7, true);
	cr_expect_eq(total(CELL_TOTAL_unused), 1);
}

Test(deadline, it_starts_again_with_what_the_kernel_takes)
{
	int fd = asking();
	uint64_t first_ns = deadline_ns(gate_find(fd));

	cr_expect_neq(first_ns, 0);
	while (clock_now_ns() < first_ns - HOUR_NS + MS_NS)
		sched_yield();
	cr_assert_eq(hook_send(fd, "more", 4, 0), 4);
	cr_expect_geq(deadline_ns(gate_find(fd)), first_ns + MS_NS / 2);
}

Test(deadline, a_connection_with_no_open_call_lives)
{
	int fd = asking(), silent = connected(0), server = accepted();
	char data[8];

	cr_assert_eq(send(server, "answer", 6, 0), 6);
	cr_assert_eq(hook_recv(fd, data, sizeof(data), 0), 6);
	later(2 * HOUR_NS);
	later(4 * HOUR_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	cr_expect_eq(hook_send(silent, "request", 7, 0), 7);
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 2);
}

/* Closed where nobody saw it, and the number given away. */
Test(deadline, no_other_file_at_the_descriptor_is_ever_shut)
{
	int fd = asking(), pair[2], copy;
	char data[8];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_eq(dup2(pair[0], fd), fd);
	copy = fd;
	later(2 * HOUR_NS);
	cr_expect_eq(send(copy, "alive", 5, 0), 5);
	cr_expect_eq(recv(pair[1], data, sizeof(data), MSG_DONTWAIT), 5);
	cr_expect_eq(send(pair[1], "alive", 5, 0), 5);
	cr_expect_eq(recv(copy, data, sizeof(data), MSG_DONTWAIT), 5);
}

Test(deadline, no_answer_of_ours_reaches_another_file_at_the_descriptor)
{
	int fd = asking(), pair[2];

	later(2 * HOUR_NS);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_assert_eq(dup2(pair[0], fd), fd);
	cr_expect_eq(hook_send(fd, "alive", 5, 0), 5);
	cr_expect_null(gate_find(fd));
}

Test(deadline, it_is_found_by_a_copy)
{
	int fd = asking(), copy = hook_dup(fd), server = accepted();
	char data[8];

	cr_assert_eq(hook_close(fd), 0);
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_assert_eq(recv(server, data, sizeof(data), 0), 7);
	cr_expect_eq(recv(server, data, sizeof(data), 0), 0);
	expect_dead(copy);
}

/* In the middle of a send: the other side of the socket would raise SIGPIPE. */
Test(deadline, while_a_send_lasts_only_the_receiving_side_is_shut)
{
	int fd = asking(), server = accepted();
	struct iovec vector = { "more", 4 };
	struct gate gate;
	char data[8];

	cr_assert(gate_send(&gate, gate_find(fd), fd, (struct bytes){ &vector, 1 }, 0));
	later_by_and_by();
	cr_expect_eq(total(CELL_TOTAL_timeout), 1, "counted at once");
	cr_expect(is_readable(fd, -1), "a reader wakes");
	cr_expect_eq(send(fd, "more", 4, 0), 4, "the send goes on");
	cr_assert_eq(recv(server, data, 7, 0), 7);
	cr_assert_eq(recv(server, data, sizeof(data), 0), 4);
	cr_expect_not(is_readable(server, 0));
	cr_expect_eq(gate_sent(&gate, 4), 4);
	cr_expect_eq(recv(server, data, sizeof(data), 0), 0, "shut when it returned");
	expect_dead(fd);
}

/* It was counted for a moment, in which the other one returned and the rest was left to it. */
Test(deadline, a_send_that_comes_too_late_shuts_what_was_left_to_it)
{
	int fd = asking(), server = accepted();
	struct connection *connection = gate_find(fd);
	char data[8];

	cr_assert(deadline_send_begins(connection));
	later_by_and_by();
	cr_assert_eq(recv(server, data, 7, 0), 7);
	cr_assert_not(is_readable(server, 0));
	atomic_fetch_sub(&connection->deadline.senders, 1);
	cr_expect_not(deadline_send_begins(connection));
	cr_expect_eq(recv(server, data, sizeof(data), MSG_DONTWAIT), 0);
}

Test(deadline, what_a_shutdown_makes_the_kernel_say_is_a_timeout)
{
	int errors[] = { ECONNRESET, ENOTCONN, EPIPE };
	struct iovec vector = { "more", 4 };
	struct bytes bytes = { &vector, 1 };
	struct gate sending, receiving;

	for (size_t i = 0; i < 3; i++) {
		int fd = asking();

		cr_assert(gate_send(&sending, gate_find(fd), fd, bytes, 0));
		cr_assert(gate_receive(&receiving, gate_find(fd), fd, bytes, MSG_DONTWAIT));
		later_by_and_by();
		errno = errors[i];
		cr_expect_eq(gate_sent(&sending, -1), -1);
		cr_expect_eq(errno, ETIMEDOUT);
		errno = errors[i];
		cr_expect_eq(gate_received(&receiving, i ? -1 : 0), -1);
		cr_expect_eq(errno, ETIMEDOUT);
	}
	cr_expect_eq(total(CELL_TOTAL_timeout), 3);
}

Test(deadline, other_errors_stay)
{
	int fd = asking();
	struct iovec vector = { "more", 4 };
	struct gate gate;

	cr_assert(gate_receive(&gate, gate_find(fd), fd, (struct bytes){ &vector, 1 },
			MSG_DONTWAIT));
	later(61 * MINUTE_NS);
	errno = EAGAIN;
	cr_expect_eq(gate_received(&gate, -1), -1);
	cr_expect_eq(errno, EAGAIN);
}

/* The peer takes nothing: first the kernel's buffers fill. */
static void fill(int fd)
{
	static char chunk[65536];

	while (hook_send(fd, chunk, sizeof(chunk), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(errno, EAGAIN);
}

Test(deadline, an_upload_that_goes_on_lives_though_the_program_sends_nothing)
{
	int fd = asking(), server = accepted();
	static char data[65536];
	uint64_t now_ns;

	fill(fd);
	now_ns = clock_now_ns();
	for (int quarter = 1; quarter <= 8; quarter++) {
		for (int i = 0; i < 4; i++)
			cr_assert_gt(recv(server, data, sizeof(data), 0), 0);
		cr_assert(is_readable(server, -1), "more has come through");
		deadlines_serve(now_ns + (uint64_t)quarter * HOUR_NS / 4 + MINUTE_NS);
	}
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
}

Test(deadline, an_upload_that_stands_still_ends)
{
	int fd = asking();

	accepted();
	fill(fd);
	later_by_and_by();
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	expect_dead(fd);
}

Test(deadline, observed_it_is_counted_and_nothing_is_shut)
{
	int fd, server;
	char data[8];

	runtime.observe = true;
	fd = asking();
	server = accepted();
	later(61 * MINUTE_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_assert_eq(send(server, "answer", 6, 0), 6);
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), 6);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
}

Test(deadline, a_disconnected_socket_is_new)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int fd = asking();

	later(61 * MINUTE_NS);
	cr_expect_eq(hook_connect(fd, &nowhere, sizeof(nowhere)), 0);
	cr_expect_eq(connect_peer(fd), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline, once_a_filter_was_seen_there_is_none)
{
	int fd;

	own_calls_forbid();
	fd = asking();
	cr_expect_not(deadline_applies(gate_find(fd)));
	later(2 * HOUR_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(hook_send(fd, "more", 4, 0), 4);
}

Test(deadline, where_a_filter_comes_meanwhile_the_kernel_is_not_asked)
{
	int fd = asking();

	own_calls_forbid();
	cr_expect(deadline_applies(gate_find(fd)));
	cr_expect_eq(later(2 * HOUR_NS), 0);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(hook_send(fd, "more", 4, 0), 4);
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
}

Test(deadline_told, a_rule_without_a_timeout_has_none)
{
	start_with("");
	cr_expect_not(deadline_applies(gate_find(asking())));
	cr_expect_eq(later(2 * HOUR_NS), 0, "and the timer nothing to look at");
}

/* The call of the parent's was cancelled; the child may not touch what both have. */
Test(deadline, a_forked_child_shuts_nothing)
{
	int idle, fd = asking(), server = accepted(), status;
	char data[8];
	pid_t child;

	idle = asking();
	cr_assert_eq(send(accepted(), "answer", 6, 0), 6);
	cr_assert_eq(hook_recv(idle, data, sizeof(data), 0), 6);
	child = fork();
	if (child == 0) {
		gate_fork_child();
		if (hook_send(idle, "request", 7, 0) != 7)
			_exit(1);
		_exit(later(2 * HOUR_NS) ? 2 : 0);
	}
	gate_fork_parent();
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	later(2 * HOUR_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
	cr_assert_eq(recv(server, data, sizeof(data), 0), 7);
	cr_expect_not(is_readable(server, 0));
	cr_expect_eq(hook_send(idle, "request", 7, 0), 7);
	cr_expect_eq(hook_send(fd, "more", 4, 0), 4);
}

static sem_t begun;
static _Atomic bool has_returned;

static void *close_it(void *fd)
{
	sem_post(&begun);
	hook_close(*(int *)fd);
	atomic_store(&has_returned, true);
	return NULL;
}

static void *close_range_it(void *fd)
{
	sem_post(&begun);
	hook_close_range(*(unsigned int *)fd, *(unsigned int *)fd, 0);
	atomic_store(&has_returned, true);
	return NULL;
}

static void *replace_it(void *fd)
{
	sem_post(&begun);
	hook_dup2(listener, *(int *)fd);
	atomic_store(&has_returned, true);
	return NULL;
}

static void expect_wait(void *(*closing)(void *))
{
	int fd = asking();
	struct connection *connection = gate_find(fd);
	pthread_t thread;

	sem_init(&begun, 0, 0);
	atomic_store(&has_returned, false);
	cr_assert(fd_table_pin(connection));
	cr_assert_eq(pthread_create(&thread, NULL, closing, &fd), 0);
	sem_wait(&begun);
	while (gate_find(fd))
		sched_yield();
	/* As long as it likes: longer than it spins. */
	for (int i = 0; i < 1000; i++)
		sched_yield();
	cr_expect_not(atomic_load(&has_returned));
	cr_expect_neq(fcntl(fd, F_GETFD), -1, "not closed yet");
	cr_expect_eq(fd_table_descriptor(connection), -1);
	fd_table_unpin(connection);
	pthread_join(thread, NULL);
	cr_expect(atomic_load(&has_returned));
	cr_expect_not(fd_table_pin(connection));
	hook_close(fd);
}

Test(deadline, who_closes_waits_until_it_is_unpinned)
{
	expect_wait(close_it);
	expect_wait(close_range_it);
	expect_wait(replace_it);
}

Test(deadline, many_who_close_wait_together)
{
	int fds[8];
	struct connection *connection;
	pthread_t threads[8];

	sem_init(&begun, 0, 0);
	fds[0] = asking();
	connection = gate_find(fds[0]);
	for (int i = 1; i < 8; i++)
		fds[i] = hook_dup(fds[0]);
	cr_assert(fd_table_pin(connection));
	cr_assert(fd_table_pin(connection));
	for (int i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, close_it, &fds[i]), 0);
	for (int i = 0; i < 8; i++)
		sem_wait(&begun);
	fd_table_unpin(connection);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	fd_table_unpin(connection);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

/* Where no thread may run. */
Test(deadline_told, a_blocking_recv_is_bounded_without_a_thread)
{
	uint64_t began_ns;
	int fd;
	char data[8];

	start_with("timeout=50ms");
	fd = asking();
	began_ns = clock_now_ns();
	errno = 0;
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_geq(clock_now_ns() - began_ns, 49 * MS_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	expect_dead(fd);
}

Test(deadline_told, a_greeting_is_bounded_without_a_thread)
{
	int fd;
	char data[8];

	start_with("timeout=50ms");
	fd = connected(0);
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_told, the_programs_own_receive_timeout_stays)
{
	struct timeval own = { .tv_usec = 20000 };
	int fd;
	char data[8];

	start_with("timeout=10s");
	fd = asking();
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &own, sizeof(own));
	errno = 0;
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
}

/* Bounded or not, it returns all that it was asked for: what there is, the rest much later. */
static void expect_all(int fd, int server)
{
	struct timespec pause = { .tv_nsec = 150 * MS_NS };
	pthread_t thread;
	void *result;

	cr_assert_eq(send(server, "part", 4, 0), 4);
	cr_assert(is_there(fd, 4));
	cr_assert_eq(pthread_create(&thread, NULL, receive_all, &fd), 0);
	nanosleep(&pause, NULL);
	cr_assert_eq(send(server, "rest", 4, 0), 4);
	pthread_join(thread, &result);
	cr_expect_eq((ssize_t)result, 8);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

Test(deadline_told, a_recv_of_all_is_not_cut_short_without_a_thread)
{
	int fd;

	start_with("timeout=50ms");
	fd = asking();
	expect_all(fd, accepted());
}

/* As above, and the kernel wakes nobody before all is there. */
Test(deadline_told, nor_one_with_a_low_water_mark)
{
	int fd, mark = 8;

	start_with("timeout=50ms");
	fd = asking();
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)), 0);
	expect_all(fd, accepted());
}

static void fill_backlog(void)
{
	cr_assert_eq(listen(listener, 0), 0);
	for (int i = 0; i < 2; i++) {
		int filler = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		connect(filler, (struct sockaddr *)&peer, sizeof(peer));
	}
}

static void expect_connect_bounded(void)
{
	struct timeval left;
	socklen_t size = sizeof(left);
	uint64_t began_ns;
	int fd;

	fill_backlog();
	fd = hook_socket(AF_INET, SOCK_STREAM, 0);
	began_ns = clock_now_ns();
	errno = 0;
	cr_expect_eq(connect_peer(fd), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_geq(clock_now_ns() - began_ns, 50 * MS_NS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, &size), 0);
	cr_expect(left.tv_sec == 0 && left.tv_usec == 0, "put back");
	cr_expect_eq(state_of(fd), TCP_CLOSE, "no more SYN");
	expect_dead(fd);
}

Test(deadline_told, a_blocking_connect_is_bounded_without_a_thread)
{
	start_with("timeout=50ms");
	expect_connect_bounded();
}

Test(deadline_told, a_blocking_connect_is_bounded_with_one)
{
	start_with("timeout=50ms");
	runtime.config.timer = TIMER_AUTO;
	expect_connect_bounded();
}

Test(deadline_told, the_programs_shorter_send_timeout_is_no_timeout_of_ours)
{
	struct timeval own = { .tv_usec = 20000 };
	int fd;

	start_with("timeout=10s");
	fill_backlog();
	fd = hook_socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &own, sizeof(own));
	errno = 0;
	cr_expect_eq(connect_peer(fd), -1);
	cr_expect_eq(errno, EINPROGRESS);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
}

static void handle(int number)
{
	(void)number;
}

static _Atomic bool has_ended;

/* As long as it lasts: the first ones may come before it has begun. */
static void *interrupt(void *target)
{
	while (!has_ended) {
		struct timespec pause = { .tv_nsec = 5000000 };

		nanosleep(&pause, NULL);
		pthread_kill(*(pthread_t *)target, SIGUSR1);
	}
	return NULL;
}

static ssize_t receive(int fd)
{
	char data[8];

	return hook_recv(fd, data, sizeof(data), 0);
}

/* A call that the peer does not answer; its error. */
static int fail_under_signals(int flags, int fd, ssize_t (*call)(int fd))
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };
	pthread_t thread, self = pthread_self();
	int error;

	for (int number = 1; number < NSIG; number++)
		if (number != SIGKILL && number != SIGSTOP)
			signal(number, SIG_DFL);
	sigaction(SIGUSR1, &action, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, interrupt, &self), 0);
	errno = 0;
	cr_expect_eq(call(fd), -1);
	error = errno;
	has_ended = true;
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return error;
}

static ssize_t attempt(int fd)
{
	return connect_peer(fd);
}

static int connect_under_signals(int flags)
{
	fill_backlog();
	return fail_under_signals(flags, hook_socket(AF_INET, SOCK_STREAM, 0), attempt);
}

/* Bounded calls are never restarted by the kernel: the program must not notice. */
Test(deadline_told, a_handler_that_restarts_calls_restarts_a_bounded_connect)
{
	start_with("timeout=300ms");
	cr_expect_eq(connect_under_signals(SA_RESTART), ETIMEDOUT);
}

Test(deadline_told, a_handler_that_interrupts_calls_interrupts_a_bounded_connect)
{
	start_with("timeout=50s");
	cr_expect_eq(connect_under_signals(0), EINTR);
}

Test(deadline_told, a_handler_that_restarts_calls_does_not_show_in_a_bounded_recv)
{
	start_with("timeout=300ms");
	cr_expect_eq(fail_under_signals(SA_RESTART, asking(), receive), ETIMEDOUT);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_told, a_handler_that_interrupts_calls_interrupts_a_bounded_recv)
{
	int fd;

	start_with("timeout=50s");
	fd = asking();
	cr_expect_eq(fail_under_signals(0, fd, receive), EINTR);
	cr_expect_eq(send(accepted(), "answer", 6, 0), 6);
	cr_expect_eq(receive(fd), 6);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

/* The next signal's handler returns only when the time is over; and, where `completes` is set, when
 * the attempt is complete as well. */
static _Atomic int connecting;
static _Atomic bool completes;

static void take_too_long(int number)
{
	struct timespec pause = { .tv_sec = 1, .tv_nsec = 100 * MS_NS };
	int error = errno;

	(void)number;
	/* Room for the next SYN. */
	if (completes)
		accepted();
	nanosleep(&pause, NULL);
	pause = (struct timespec){ .tv_nsec = MS_NS };
	while (completes && state_of(connecting) == TCP_SYN_SENT)
		nanosleep(&pause, NULL);
	errno = error;
}

static void *interrupt_attempt(void *target)
{
	struct timespec pause = { .tv_nsec = MS_NS };

	while (state_of(connecting) != TCP_SYN_SENT)
		nanosleep(&pause, NULL);
	pthread_kill(*(pthread_t *)target, SIGUSR1);
	return NULL;
}

static int connect_interrupted(bool does_complete)
{
	struct sigaction action = { .sa_handler = take_too_long, .sa_flags = SA_RESTART };
	pthread_t thread, self = pthread_self();
	int result;

	start_with("timeout=1s");
	fill_backlog();
	for (int number = 1; number < NSIG; number++)
		if (number != SIGKILL && number != SIGSTOP)
			signal(number, SIG_DFL);
	sigaction(SIGUSR1, &action, NULL);
	completes = does_complete;
	connecting = hook_socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(pthread_create(&thread, NULL, interrupt_attempt, &self), 0);
	errno = 0;
	result = connect_peer(connecting);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return result;
}

Test(deadline_told, a_connect_that_was_interrupted_until_the_time_was_over_has_timed_out)
{
	cr_expect_eq(connect_interrupted(false), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_told, a_connect_that_was_complete_when_its_time_was_over_has_succeeded)
{
	cr_expect_eq(connect_interrupted(true), 0, "%s", strerror(errno));
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
	cr_expect_eq(hook_send(connecting, "request", 7, 0), 7);
}

/* The kernel gave up by our bound, and completed it before anybody looked. */
Test(deadline, a_bounded_connect_is_made_again_where_only_our_time_was_over)
{
	struct bound bound = { .option = SO_SNDTIMEO };
	int fd = connected(SOCK_NONBLOCK), server = accepted();
	struct connection *connection = gate_find(fd);

	for (int i = 0; i < 2; i++) {
		errno = i ? EALREADY : EINPROGRESS;
		cr_expect(timed_connect_goes_on(connection, fd, &bound));
	}
	bound.option = 0;
	errno = EINPROGRESS;
	cr_expect_not(timed_connect_goes_on(connection, fd, &bound), "it never was bounded");
	bound.option = SO_SNDTIMEO;
	errno = ECONNREFUSED;
	cr_expect_not(timed_connect_goes_on(connection, fd, &bound));
	close(server);
}

/* From here on with the thread. */
static unsigned long thread_count(void)
{
	struct stat tasks;

	cr_assert_eq(stat("/proc/self/task", &tasks), 0);
	return tasks.st_nlink - 2;
}

static void expect_timeout(ssize_t result)
{
	cr_expect_eq(result, -1);
	cr_expect_eq(errno, ETIMEDOUT);
}

Test(deadline_thread, wakes_a_blocking_recv)
{
	int fd = asking();
	char data[8];

	expect_timeout(hook_recv(fd, data, sizeof(data), 0));
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_thread, wakes_a_recv_that_awaits_a_greeting)
{
	int fd = connected(0);
	char data[8];

	expect_timeout(hook_recv(fd, data, sizeof(data), 0));
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_thread, wakes_poll)
{
	struct pollfd entry = { .fd = asking(), .events = POLLIN };
	char data[8];

	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect(entry.revents & POLLIN);
	expect_timeout(hook_recv(entry.fd, data, sizeof(data), 0));
}

Test(deadline_thread, wakes_a_poll_that_awaits_a_greeting)
{
	struct pollfd entry = { .fd = connected(0), .events = POLLIN };
	char data[8];

	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	expect_timeout(hook_recv(entry.fd, data, sizeof(data), 0));
}

Test(deadline_thread, wakes_a_poll_for_writing_of_an_attempt)
{
	struct pollfd entry = { .events = POLLOUT };

	fill_backlog();
	entry.fd = hook_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	cr_assert_eq(connect_peer(entry.fd), -1);
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_eq(so_error(entry.fd), ETIMEDOUT);
}

Test(deadline_thread, wakes_select)
{
	int fd = asking();
	char data[8];
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	cr_expect_eq(hook_select(fd + 1, &set, NULL, NULL, NULL), 1);
	expect_timeout(hook_recv(fd, data, sizeof(data), 0));
}

static void expect_epoll_wakes(uint32_t events)
{
	int epoll = epoll_create1(0), fd = asking();
	struct epoll_event event = { .events = events };
	char data[8];

	cr_assert_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	do {
		cr_expect_eq(epoll_wait(epoll, &event, 1, -1), 1);
	} while (!(event.events & EPOLLIN));
	expect_timeout(hook_recv(fd, data, sizeof(data), MSG_DONTWAIT));
}

Test(deadline_thread, wakes_epoll)
{
	expect_epoll_wakes(EPOLLIN);
}

Test(deadline_thread, wakes_edge_triggered_epoll)
{
	expect_epoll_wakes(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

Test(deadline_thread, runs_while_such_a_connection_is_open_and_ends_then)
{
	unsigned long before = thread_count();
	int fd = asking(), idle;
	char data[8];

	cr_expect_eq(thread_count(), before + 1);
	expect_timeout(hook_recv(fd, data, sizeof(data), 0));
	idle = connected(0);
	hook_close(fd);
	/* It has looked, and not gone. */
	for (int round = 0; round < 3; round++) {
		struct timespec pause = { .tv_nsec = 110000000 };

		nanosleep(&pause, NULL);
		cr_expect_eq(thread_count(), before + 1);
	}
	hook_close(idle);
	while (thread_count() != before)
		sched_yield();
}

/* A send starts no thread: it must be there, and look sooner than it meant to. */
Test(deadline_told, a_kept_alive_connections_next_call_is_watched)
{
	int fd, server;
	char data[8];

	start_with("timeout=10ms");
	runtime.config.timer = TIMER_AUTO;
	fd = connected(0);
	server = accepted();
	for (int round = 0; round < 3; round++) {
		/* The answer may come too late on a busy machine; then the next try. */
		cr_assert_eq(send(server, "answer", 6, 0), 6);
		cr_assert_eq(hook_recv(fd, data, sizeof(data), 0), 6);
		struct timespec pause = { .tv_nsec = 30000000 };

		nanosleep(&pause, NULL);
		cr_assert_eq(total(CELL_TOTAL_timeout), 0);
	}
	cr_assert_eq(hook_send(fd, "request", 7, 0), 7);
	expect_timeout(hook_recv(fd, data, sizeof(data), 0));
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
}

Test(deadline_thread, after_a_new_namespace_the_next_connect_starts_it_again)
{
	unsigned long before = thread_count();
	int fd = asking();

	hook_unshare(0);
	cr_expect_eq(thread_count(), before);
	connected(0);
	cr_expect_eq(thread_count(), before + 1);
	/* And the call from before is served, too. */
	while (total(CELL_TOTAL_timeout) < 1)
		sched_yield();
	expect_dead(fd);
}
