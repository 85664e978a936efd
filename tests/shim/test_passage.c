/* SPDX-License-Identifier: MIT */
/* Data on a connection under faults. Times are compared in one direction only. */
#include "faults.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "shim/below.h"

int hook_poll(struct pollfd *entries, nfds_t count, int timeout);
int hook_shutdown(int fd, int how);
ssize_t hook_writev(int fd, const struct iovec *vectors, int count);
ssize_t hook_readv(int fd, const struct iovec *vectors, int count);
ssize_t hook_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t hook_recvmsg(int fd, struct msghdr *message, int flags);

static char answer[64];
static int fd, peer;

static void open_stream(void)
{
	faults_open(SOCK_STREAM);
	signal(SIGPIPE, SIG_DFL);
}

TestSuite(passage, .init = open_stream, .timeout = 60);

static void begin(const char *rules)
{
	faults_start(rules);
	fd = connection_new(&peer);
}

static ssize_t ask(void)
{
	memset(answer, 0, sizeof(answer));
	return exchange_on(fd, peer, answer, sizeof(answer));
}

static void do_not_block(void)
{
	real()->fcntl(fd, F_SETFL, O_NONBLOCK);
}

static void wait_until_readable(void)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	/* The kernel's word, of which nothing is held. */
	cr_assert_eq(below()->poll(&entry, 1, -1), 1);
}

Test(passage, a_reset_comes_after_so_many_bytes_and_stays)
{
	begin("fault A = 127.0.0.1:PORT reset=8B\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(ask(), 2, "the rest up to the limit");
	cr_expect_eq(injected(0), 1);
	for (int i = 0; i < 3; i++) {
		cr_expect_lt(hook_recv(fd, answer, 1, 0), 0);
		cr_expect_eq(errno, ECONNRESET);
	}
	cr_expect_lt(hook_send(fd, "x", 1, MSG_NOSIGNAL), 0);
	cr_expect_eq(errno, ECONNRESET);
}

Test(passage, whoever_waits_is_woken_by_a_reset)
{
	struct pollfd entry;

	begin("fault A = 127.0.0.1:PORT reset=6B\n");
	cr_expect_eq(ask(), 6);
	entry = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_expect_eq(hook_poll(&entry, 1, -1), 1, "nothing else would come");
}

Test(passage, a_reset_of_what_is_sent_counts_that)
{
	begin("fault A = 127.0.0.1:PORT reset=4B dir=out\n");
	cr_expect_eq(hook_send(fd, "abcdef", 6, MSG_NOSIGNAL), 4);
	cr_expect_lt(hook_send(fd, "ef", 2, MSG_NOSIGNAL), 0);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(recv(peer, answer, sizeof(answer), 0), 4);
}

Test(passage, an_end_of_stream_is_no_error)
{
	begin("fault A = 127.0.0.1:PORT close=6B\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 0);
}

Test(passage, calls_are_numbered_from_the_attempt)
{
	begin("fault A = 127.0.0.1:PORT reset per=call calls=3\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(ask(), 6);
	cr_expect_eq(ask(), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(suppressed(0, FAULT_BY_NUMBER), 2);
}

Test(passage, an_error_strikes_the_call_that_it_is_for)
{
	begin("fault A = 127.0.0.1:PORT errno=ETIMEDOUT dir=in\n");
	cr_expect_eq(hook_send(fd, "ask", 3, 0), 3);
	cr_expect_lt(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_eq(errno, ETIMEDOUT);
}

static void *receives_one(void *unused)
{
	char byte;

	(void)unused;
	return (void *)(intptr_t)hook_recv(fd, &byte, 1, 0);
}

static volatile sig_atomic_t pipes;

static void count_pipe(int signal)
{
	(void)signal;
	pipes++;
}

Test(passage, a_broken_pipe_is_told_by_its_signal_too)
{
	signal(SIGPIPE, count_pipe);
	begin("fault A = 127.0.0.1:PORT errno=EPIPE dir=out\n");
	cr_expect_lt(hook_send(fd, "x", 1, MSG_NOSIGNAL), 0);
	cr_expect_eq(errno, EPIPE);
	cr_expect_eq(pipes, 0);
	cr_expect_lt(hook_write(fd, "x", 1), 0);
	cr_expect_eq(errno, EPIPE);
	cr_expect_eq(pipes, 1);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 0, "which cannot fail so");
}

Test(passage, who_waits_while_it_breaks_comes_to_the_end)
{
	pthread_t thread;
	void *result;

	begin("fault A = 127.0.0.1:PORT errno=EPIPE dir=out\n");
	pthread_create(&thread, NULL, receives_one, NULL);
	cr_expect_lt(hook_send(fd, "x", 1, MSG_NOSIGNAL), 0);
	pthread_join(thread, &result);
	cr_expect_eq((intptr_t)result, 0);
}

Test(passage, what_only_a_receive_can_fail_with_is_a_broken_pipe_to_a_send)
{
	begin("fault A = 127.0.0.1:PORT errno=ENOTCONN dir=in\n");
	cr_expect_lt(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_eq(errno, ENOTCONN);
	cr_expect_lt(hook_send(fd, "x", 1, MSG_NOSIGNAL), 0);
	cr_expect_eq(errno, EPIPE);
}

Test(passage, no_call_is_shorter_than_a_byte)
{
	begin("fault A = 127.0.0.1:PORT short=1\n");
	peer_says(peer, "abc");
	wait_until_readable();
	cr_expect_eq(hook_recv(fd, answer, 3, MSG_PEEK), 3, "a peek is left alone");
	cr_expect_eq(injected(0), 0);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 1, "one byte cannot be less");
	cr_expect_eq(injected(0), 0);
	cr_expect_eq(hook_recv(fd, answer, 2, 0), 1);
	cr_expect_eq(hook_read(fd, answer, 2), 1);
	cr_expect_eq(injected(0), 1, "once for each call");
	cr_expect_eq(hook_write(fd, "ab", 2), 1);
}

Test(passage, vectors_and_messages_are_short_as_well)
{
	char one[2], other[3];
	struct iovec vectors[] = { { one, 2 }, { other, 3 } };
	struct msghdr message = { .msg_iov = vectors, .msg_iovlen = 2 };

	begin("fault A = 127.0.0.1:PORT short=3\n");
	peer_says(peer, "abcdef");
	wait_until_readable();
	cr_expect_eq(hook_readv(fd, vectors, 2), 3);
	cr_expect(one[0] == 'a' && one[1] == 'b' && other[0] == 'c');
	cr_expect_eq(hook_recvmsg(fd, &message, 0), 3);
	cr_expect(one[0] == 'd' && message.msg_iov == vectors && message.msg_iovlen == 2);
	cr_expect_eq(hook_writev(fd, vectors, 2), 3);
	cr_expect_eq(hook_sendmsg(fd, &message, 0), 3);
	cr_expect_eq(recv(peer, answer, 6, MSG_WAITALL), 6);
	cr_expect_eq(memcmp(answer, "defdef", 6), 0);
}

static jmp_buf way_out;

static ssize_t leave(int socket, struct msghdr *message, int flags)
{
	(void)socket;
	(void)message;
	(void)flags;
	longjmp(way_out, 1);
}

Test(passage, a_message_is_the_programs_after_a_jump_out_of_its_call)
{
	static struct msghdr message;
	static struct iovec vector;

	vector = (struct iovec){ answer, sizeof(answer) };
	message = (struct msghdr){ .msg_iov = &vector, .msg_iovlen = 1 };
	begin("fault A = 127.0.0.1:PORT short=3 dir=in\n");
	below()->recvmsg = leave;
	if (!setjmp(way_out))
		hook_recvmsg(fd, &message, 0);
	cr_expect_eq(injected(0), 1);
	cr_expect(message.msg_iov == &vector && message.msg_iovlen == 1 &&
			vector.iov_base == answer && vector.iov_len == sizeof(answer));
}

Test(passage, what_the_kernel_tells_of_a_message_is_told)
{
	struct timespec stamp_room[8];
	struct iovec vector = { answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = stamp_room,
		.msg_controllen = sizeof(stamp_room), .msg_flags = -1 };

	begin("fault A = 127.0.0.1:PORT short=3 dir=in\n");
	peer_says(peer, "abcdef");
	wait_until_readable();
	cr_expect_eq(hook_recvmsg(fd, &message, 0), 3);
	cr_expect_eq(message.msg_flags, 0);
	cr_expect_eq(message.msg_controllen, 0);
}

/* Whether the data is there already is chance. */
Test(passage, the_first_call_that_may_wait_is_interrupted)
{
	begin("fault A = 127.0.0.1:PORT eintr dir=in\n");
	peer_says(peer, "ab");
	wait_until_readable();
	cr_expect_eq(hook_recv(fd, answer, 1, MSG_DONTWAIT), 1);
	cr_expect_eq(injected(0), 0);
	cr_expect_lt(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_eq(errno, EINTR);
	cr_expect_eq(injected(0), 1);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 1);
}

Test(passage, shortness_ends_with_its_rule)
{
	begin("fault A = 127.0.0.1:PORT short per=conn for=1h\n");
	peer_says(peer, "abcdef");
	wait_until_readable();
	cr_expect_eq(hook_recv(fd, answer, 3, 0), 1);
	fault_rules.rules[0].fault.for_ns = 1;
	cr_expect_eq(hook_recv(fd, answer, 3, 0), 3);
}

Test(passage, only_a_call_that_must_not_wait_is_sent_away)
{
	struct pollfd entry;

	begin("fault A = 127.0.0.1:PORT eagain dir=in\n");
	peer_says(peer, "ab");
	wait_until_readable();
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 1);
	cr_expect_eq(injected(0), 0);
	cr_expect_lt(hook_recv(fd, answer, 1, MSG_DONTWAIT), 0);
	cr_expect_eq(errno, EAGAIN);
	entry = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_eq(hook_recv(fd, answer, 1, MSG_DONTWAIT), 1);
	cr_expect_eq(injected(0), 1);
}

Test(passage, a_send_that_is_sent_away_is_the_same_call_again)
{
	begin("fault A = 127.0.0.1:PORT eagain dir=out\n");
	do_not_block();
	for (uint64_t call = 1; call <= 3; call++) {
		struct pollfd entry = { .fd = fd, .events = POLLOUT };

		cr_expect_lt(hook_send(fd, "ask", 3, 0), 0);
		cr_expect_eq(errno, EAGAIN);
		cr_expect_eq(hook_poll(&entry, 1, -1), 1);
		cr_expect_eq(hook_send(fd, "ask", 3, 0), 3);
		peer_says(peer, "answer");
		wait_until_readable();
		cr_expect_eq(hook_recv(fd, answer, sizeof(answer), 0), 6);
		cr_expect_eq(injected(0), call);
	}
}

Test(passage, the_answer_of_a_later_call_comes_late_to_a_call_that_waits)
{
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT latency=50ms calls=2+\n");
	cr_expect_eq(ask(), 6);
	began_ns = clock_now_ns();
	cr_expect_eq(ask(), 6);
	cr_expect_geq(clock_now_ns() - began_ns, 45 * MS_NS, "the kernel's age is of milliseconds");
	cr_expect_eq(injected(0), 1);
}

Test(passage, nothing_is_lost_where_the_program_waits_for_less)
{
	struct timeval timeout = { .tv_usec = 20000 };

	begin("fault A = 127.0.0.1:PORT latency=1h calls=2\n");
	cr_expect_eq(ask(), 6);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	cr_expect_eq(ask(), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 6);
}

Test(passage, and_to_one_that_polls)
{
	struct pollfd entry;
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT latency=50ms calls=2\n");
	cr_expect_eq(ask(), 6);
	do_not_block();
	began_ns = clock_now_ns();
	cr_expect_eq(hook_send(fd, "ask", 3, 0), 3);
	peer_says(peer, "answer");
	wait_until_readable();
	cr_expect_lt(hook_recv(fd, answer, sizeof(answer), 0), 0);
	cr_expect_eq(errno, EAGAIN);
	entry = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_geq(clock_now_ns() - began_ns, 45 * MS_NS);
	cr_expect_eq(hook_recv(fd, answer, sizeof(answer), 0), 6);
}

static char block[6400];

static void *read_all(void *unused)
{
	size_t size = 0;
	char data[512];
	ssize_t got;

	(void)unused;
	while (size < sizeof(block) && (got = recv(peer, data, sizeof(data), 0)) > 0)
		size += (size_t)got;
	return NULL;
}

Test(passage, a_blocking_send_takes_all_its_bytes_and_their_time)
{
	uint64_t began_ns;
	pthread_t reader;

	begin("fault A = 127.0.0.1:PORT rate=64KB/s\n");
	began_ns = clock_now_ns();
	pthread_create(&reader, NULL, read_all, NULL);
	cr_expect_eq(hook_send(fd, block, sizeof(block), 0), sizeof(block));
	pthread_join(reader, NULL);
	cr_expect_geq(clock_now_ns() - began_ns, 75 * MS_NS, "100 ms, less a piece");
	cr_expect_eq(injected(0), 1);
}

Test(passage, what_does_not_block_gets_what_there_is_and_is_told_to_come_again)
{
	uint64_t began_ns;
	size_t size = 0;

	begin("fault A = 127.0.0.1:PORT rate=64KB/s dir=in\n");
	do_not_block();
	began_ns = clock_now_ns();
	cr_assert_eq(send(peer, block, sizeof(block), 0), sizeof(block));
	while (size < sizeof(block)) {
		struct pollfd entry = { .fd = fd, .events = POLLIN };
		ssize_t got = hook_recv(fd, block, sizeof(block), 0);

		if (got > 0)
			size += (size_t)got;
		else
			cr_assert_eq(hook_poll(&entry, 1, -1), 1);
	}
	cr_expect_geq(clock_now_ns() - began_ns, 75 * MS_NS);
}

Test(passage, a_slow_close_comes_late)
{
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT slowclose=50ms\n");
	began_ns = clock_now_ns();
	real()->close(peer);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_geq(clock_now_ns() - began_ns, 45 * MS_NS);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), 0);
	cr_expect_eq(injected(0), 1);
}

static int bytes_changed(const char *was, const char *is, int size)
{
	int count = 0;

	for (int i = 0; i < size; i++)
		count += was[i] != is[i];
	return count;
}

Test(passage, bytes_are_changed_on_the_way_and_not_in_the_program)
{
	static const char request[] = "abcdefgh";

	begin("fault A = 127.0.0.1:PORT corrupt=1 dir=out\n");
	cr_expect_eq(hook_send(fd, request, 8, 0), 8);
	cr_expect_eq(recv(peer, answer, 8, MSG_WAITALL), 8);
	cr_expect_eq(bytes_changed("abcdefgh", answer, 8), 1);
	cr_expect_str_eq(request, "abcdefgh");
	cr_expect_eq(hook_send(fd, request, 8, 0), 8);
	cr_expect_eq(recv(peer, answer, 8, MSG_WAITALL), 8);
	cr_expect_eq(bytes_changed("abcdefgh", answer, 8), 0, "once for each call");
}

Test(passage, what_the_kernel_turns_back_is_changed_when_it_is_sent)
{
	static char big[65536], drained[65536];
	struct pollfd entry;
	size_t filled = 0;
	ssize_t size;

	begin("fault A = 127.0.0.1:PORT corrupt=1 dir=out\n");
	do_not_block();
	while ((size = below()->send(fd, big, sizeof(big), 0)) > 0)
		filled += (size_t)size;
	cr_expect_eq(hook_send(fd, "abcdefgh", 8, 0), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(injected(0), 0);
	for (; filled; filled -= (size_t)size) {
		size = recv(peer, drained,
				filled < sizeof(drained) ? filled : sizeof(drained), 0);
		cr_assert_gt(size, 0);
	}
	entry = (struct pollfd){ .fd = fd, .events = POLLOUT };
	cr_assert_eq(below()->poll(&entry, 1, -1), 1);
	cr_expect_eq(hook_send(fd, "abcdefgh", 8, 0), 8);
	cr_expect_eq(recv(peer, answer, 8, MSG_WAITALL), 8);
	cr_expect_eq(bytes_changed("abcdefgh", answer, 8), 1);
}

Test(passage, a_long_blocking_send_is_whole_where_its_beginning_is_changed)
{
	static char big[1000], got[1000];

	begin("fault A = 127.0.0.1:PORT corrupt=1 dir=out\n");
	cr_expect_eq(hook_send(fd, big, sizeof(big), 0), sizeof(big));
	cr_expect_eq(recv(peer, got, sizeof(got), MSG_WAITALL), sizeof(got));
	cr_expect_eq(bytes_changed(big, got, sizeof(big)), 1);
}

Test(passage, as_many_bytes_are_changed_as_the_rule_says)
{
	static char big[256], got[256];

	begin("fault A = 127.0.0.1:PORT corrupt=200 dir=out\n");
	cr_expect_eq(hook_send(fd, big, sizeof(big), 0), sizeof(big));
	cr_expect_eq(recv(peer, got, sizeof(got), MSG_WAITALL), sizeof(got));
	cr_expect_eq(bytes_changed(big, got, sizeof(big)), 200);
}

Test(passage, of_less_than_the_rule_says_all_is_changed)
{
	begin("fault A = 127.0.0.1:PORT corrupt=1000 dir=in\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(bytes_changed("answer", answer, 6), 6);
}

Test(passage, received_bytes_are_changed)
{
	begin("fault A = 127.0.0.1:PORT corrupt=1 dir=in\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(bytes_changed("answer", answer, 6), 1);
}

Test(passage, a_peer_that_hangs_from_some_call_on_is_silent_however_one_waits)
{
	struct timeval timeout = { .tv_usec = 20000 };

	begin("fault A = 127.0.0.1:PORT hang per=call calls=2\n");
	cr_expect_eq(ask(), 6);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	cr_expect_eq(ask(), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_lt(recv(fd, answer, 1, 0), 0, "asked behind our back");
}

Test(passage, a_rule_added_by_hand_strikes_connections_that_are_there)
{
	begin("break B = 127.0.0.1:PORT\n");
	cr_expect_eq(ask(), 6);
	fault_added("X", "127.0.0.1:PORT reset");
	cr_expect_eq(ask(), -1);
	cr_expect_eq(errno, ECONNRESET);
}

Test(passage, errno_is_kept_where_all_is_well)
{
	begin("fault A = 127.0.0.1:PORT rate=64MB/s\n");
	errno = 77;
	cr_expect_eq(ask(), 6);
	cr_expect_eq(errno, 77);
}

static void limit_time(int option, int ms)
{
	struct timeval time = { .tv_usec = ms * 1000 };

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, option, &time, sizeof(time)), 0);
}

Test(passage, what_is_looked_at_under_a_rate_is_looked_at_once)
{
	char data[3000], seen[3000] = { 0 };

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 256);
	begin("fault A = 127.0.0.1:PORT rate=64KB/s dir=in\n");
	cr_assert_eq(send(peer, data, sizeof(data), 0), (ssize_t)sizeof(data));
	wait_until_readable();
	ssize_t size = hook_recv(fd, seen, sizeof(seen), MSG_PEEK | MSG_WAITALL);

	cr_assert_gt(size, 0);
	cr_expect_eq(memcmp(seen, data, (size_t)size), 0);
}

Test(passage, a_slow_call_ends_by_its_own_time)
{
	static char data[100000];
	ssize_t size;

	begin("fault A = 127.0.0.1:PORT rate=1KB/s\n");
	limit_time(SO_SNDTIMEO, 100);
	size = hook_send(fd, data, sizeof(data), MSG_NOSIGNAL);
	cr_expect_gt(size, 0);
	cr_expect_lt(size, (ssize_t)sizeof(data) / 2);
}

Test(passage, an_end_that_comes_late_does_not_outlast_the_own_time_of_the_call)
{
	begin("fault A = 127.0.0.1:PORT slowclose=1h\n");
	cr_expect_eq(ask(), 6);
	real()->close(peer);
	limit_time(SO_RCVTIMEO, 50);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), -1);
	cr_expect_eq(errno, EAGAIN);
}

static void *receives(void *unused)
{
	char byte;

	hook_recv(fd, &byte, 1, 0);
	return unused;
}

Test(passage, who_waits_for_a_late_answer_is_woken_when_it_is_shut)
{
	pthread_t thread;

	begin("fault A = 127.0.0.1:PORT latency=1h calls=2\n");
	cr_expect_eq(ask(), 6);
	cr_expect_eq(hook_send(fd, "ask", 3, MSG_NOSIGNAL), 3);
	peer_says(peer, "answer");
	wait_until_readable();
	pthread_create(&thread, NULL, receives, NULL);
	while (injected(0) == 0)
		sched_yield();
	hook_shutdown(fd, SHUT_RDWR);
	pthread_join(thread, NULL);
}

Test(passage, what_is_thrown_away_is_not_corrupted)
{
	char buffer[8] = "seven..";

	begin("fault A = 127.0.0.1:PORT corrupt=4 dir=in\n");
	peer_says(peer, "answer, and more");
	wait_until_readable();
	cr_expect_eq(hook_recv(fd, NULL, 8, MSG_TRUNC), 8);
	cr_expect_eq(hook_recv(fd, buffer, 4, MSG_TRUNC), 4);
	cr_expect_str_eq(buffer, "seven..");
	cr_expect_eq(hook_recv(fd, NULL, 4, 0), -1);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(injected(0), 0);
}

/* Who stops at a short transfer: the next edge comes all the same. */
static void edges_come(const char *rule, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLET };
	int set = epoll_create1(0), edges = 0;
	char data[64] = { 0 };

	begin(rule);
	do_not_block();
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	if (events & EPOLLIN)
		cr_assert_eq(send(peer, data, sizeof(data), 0), (ssize_t)sizeof(data));
	for (size_t done = 0; done < sizeof(data); edges++) {
		ssize_t size;

		cr_assert_eq(real()->epoll_wait(set, &event, 1, 10000), 1, "%s: %zu", rule, done);
		size = events & EPOLLIN ? hook_recv(fd, data, sizeof(data) - done, 0)
					: hook_send(fd, data, sizeof(data) - done, MSG_NOSIGNAL);
		cr_assert(size > 0 || errno == EAGAIN, "%s: %zu", rule, done);
		done += size > 0 ? (size_t)size : 0;
	}
	cr_expect_gt(edges, 1);
}

Test(passage, an_edge_follows_a_short_read)
{
	edges_come("fault A = 127.0.0.1:PORT short=10\n", EPOLLIN);
}

Test(passage, an_edge_follows_a_short_write)
{
	edges_come("fault A = 127.0.0.1:PORT short=10\n", EPOLLOUT);
}

Test(passage, an_edge_follows_a_read_at_a_rate)
{
	edges_come("fault A = 127.0.0.1:PORT rate=1KB/s\n", EPOLLIN);
}

Test(passage, an_edge_follows_a_write_at_a_rate)
{
	edges_come("fault A = 127.0.0.1:PORT rate=1KB/s\n", EPOLLOUT);
}

Test(passage, a_silence_in_mid_life_that_the_kernel_refuses_is_kept_all_the_same)
{
	struct pollfd entry;
	int on = 1;

	begin("fault A = 127.0.0.1:PORT hang per=call calls=2\n");
	cr_expect_eq(ask(), 6);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)), 0);
	cr_expect_eq(hook_send(fd, "ask", 3, MSG_NOSIGNAL), 3);
	cr_expect_eq(injected(0), 1);
	peer_says(peer, "answer");
	wait_until_readable();
	entry = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_expect_eq(hook_poll(&entry, 1, 50), 0);
	limit_time(SO_RCVTIMEO, 50);
	cr_expect_eq(hook_recv(fd, answer, 1, 0), -1);
	cr_expect_eq(errno, EAGAIN);
}
