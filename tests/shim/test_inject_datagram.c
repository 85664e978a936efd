/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <linux/sockios.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "shim/own_call.h"

int hook_poll(struct pollfd *entries, nfds_t count, int timeout);
ssize_t hook_sendto(int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length);
ssize_t hook_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address,
		socklen_t *length);

int hook_select(int count, fd_set *reading, fd_set *writing, fd_set *other,
		struct timeval *timeout);
int hook_sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags);
int hook_recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
		struct timespec *timeout);

static struct sockaddr_in own;
static int fd;

static void begin(const char *rules)
{
	socklen_t length = sizeof(own);

	faults_open(SOCK_DGRAM);
	faults_start(rules);
	fd = hook_socket(AF_INET, SOCK_DGRAM, 0);
	own = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	cr_assert_eq(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&own, &length), 0);
}

static ssize_t say(char word)
{
	return hook_sendto(fd, &word, 1, 0, (struct sockaddr *)&listener_address,
			sizeof(listener_address));
}

/* What the peer has got since. */
static void expect_at_peer(const char *words)
{
	char word;

	for (; *words; words++) {
		cr_expect_eq(recv(listener, &word, 1, MSG_DONTWAIT), 1);
		cr_expect_eq(word, *words);
	}
	cr_expect_lt(recv(listener, &word, 1, MSG_DONTWAIT), 0);
}

static void peer_sends(const char *words)
{
	for (; *words; words++)
		cr_assert_eq(sendto(listener, words, 1, 0, (struct sockaddr *)&own, sizeof(own)),
				1);
}

/* The next word, or 0 and errno. */
static char hear(int flags)
{
	struct sockaddr_in sender = { 0 };
	socklen_t length = sizeof(sender);
	char word = 0;

	if (hook_recvfrom(fd, &word, 1, flags, (struct sockaddr *)&sender, &length) < 0)
		return 0;
	cr_expect_eq(sender.sin_port, listener_address.sin_port);
	return word;
}

TestSuite(inject_datagram, .timeout = 60);

Test(inject_datagram, a_rule_added_by_hand_strikes_one_that_is_sent)
{
	begin("break B = 127.0.0.1:1\n");
	cr_expect_eq(say('a'), 1);
	fault_added("X", "127.0.0.1:PORT proto=udp drop dir=out");
	cr_expect_eq(say('b'), 1);
	expect_at_peer("a");
}

Test(inject_datagram, and_one_that_is_received)
{
	begin("break B = 127.0.0.1:1\n");
	fault_added("X", "127.0.0.1:PORT proto=udp drop dir=in calls=1");
	peer_sends("ab");
	cr_expect_eq(hear(0), 'b');
}

Test(inject_datagram, one_that_is_lost_was_sent_all_the_same)
{
	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=out calls=2\n");
	for (const char *word = "abc"; *word; word++)
		cr_expect_eq(say(*word), 1);
	expect_at_peer("ac");
	cr_expect_eq(injected(0), 1);
}

Test(inject_datagram, one_that_is_doubled_is_there_twice)
{
	begin("fault A = 127.0.0.1:PORT proto=udp dup dir=out calls=2\n");
	for (const char *word = "abc"; *word; word++)
		cr_expect_eq(say(*word), 1);
	expect_at_peer("abbc");
}

Test(inject_datagram, one_that_is_refused_says_so)
{
	begin("fault A = 127.0.0.1:PORT proto=udp errno=ECONNREFUSED dir=out\n");
	cr_expect_lt(say('a'), 0);
	cr_expect_eq(errno, ECONNREFUSED);
	expect_at_peer("");
}

Test(inject_datagram, what_is_lost_on_the_way_in_is_not_seen)
{
	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=in calls=1..2\n");
	peer_sends("abc");
	cr_expect_eq(hear(0), 'c');
	cr_expect_eq(hear(MSG_DONTWAIT), 0);
	cr_expect_eq(errno, EAGAIN);
}

Test(inject_datagram, what_is_doubled_on_the_way_in_comes_twice_and_no_more)
{
	begin("fault A = 127.0.0.1:PORT proto=udp dup dir=in\n");
	peer_sends("ab");
	cr_expect_eq(hear(0), 'a');
	cr_expect_eq(hear(0), 'a');
	cr_expect_eq(hear(0), 'b');
	cr_expect_eq(hear(0), 'b');
	cr_expect_eq(hear(MSG_DONTWAIT), 0);
	cr_expect_eq(injected(0), 2);
}

Test(inject_datagram, one_comes_late_to_a_call_that_waits)
{
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT proto=udp latency=40ms\n");
	began_ns = clock_now_ns();
	peer_sends("a");
	cr_expect_eq(hear(0), 'a');
	cr_expect_geq(clock_now_ns() - began_ns, 40 * MS_NS);
}

Test(inject_datagram, and_to_one_that_polls)
{
	struct pollfd entry;
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT proto=udp latency=40ms\n");
	cr_expect_eq(say('x'), 1);
	began_ns = clock_now_ns();
	peer_sends("a");
	cr_expect_eq(hear(MSG_DONTWAIT), 0);
	cr_expect_eq(errno, EAGAIN);
	entry = (struct pollfd){ .fd = fd, .events = POLLIN };
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_geq(clock_now_ns() - began_ns, 40 * MS_NS);
	cr_expect_eq(hear(MSG_DONTWAIT), 'a');
}

Test(inject_datagram, a_peer_that_no_rule_names_is_left_alone)
{
	begin("fault A = 127.0.0.1:1 proto=udp drop\nfault B = 127.0.0.1:PORT refuse\n");
	cr_expect_eq(say('a'), 1);
	expect_at_peer("a");
	peer_sends("b");
	cr_expect_eq(hear(0), 'b');
	cr_expect_eq(injected(0) + injected(1), 0);
}

/* The kernel stamps what comes from a moment after it was asked to on: it does so by a thread. */
static void wait_until_stamped(void)
{
	struct sockaddr_in at;
	int probe = peer_open(SOCK_DGRAM, &at);
	struct timespec sent, stamp;
	char byte = 0;

	do {
		cr_assert_eq(sendto(probe, &byte, 1, 0, (struct sockaddr *)&at, sizeof(at)), 1);
		clock_gettime(CLOCK_REALTIME, &sent);
		cr_assert_eq(recv(probe, &byte, 1, 0), 1);
		cr_assert_eq(ioctl(probe, SIOCGSTAMPNS_OLD, &stamp), 0);
	} while (stamp.tv_sec > sent.tv_sec ||
			(stamp.tv_sec == sent.tv_sec && stamp.tv_nsec > sent.tv_nsec));
}

Test(inject_datagram, those_that_come_at_once_are_late_together)
{
	uint64_t began_ns;
	char word;

	begin("fault A = 127.0.0.1:PORT proto=udp latency=1s\n");
	cr_expect_eq(say('?'), 1);
	wait_until_stamped();
	began_ns = clock_now_ns();
	peer_sends("abcdefgh");
	for (char i = 'a'; i < 'i'; i++) {
		cr_expect_eq(hook_recvfrom(fd, &word, 1, 0, NULL, NULL), 1);
		cr_expect_eq(word, i);
		cr_expect_geq(clock_now_ns() - began_ns, 900 * MS_NS);
	}
	cr_expect_lt(clock_now_ns() - began_ns, 8000 * MS_NS, "eight in a row take eight");
	cr_expect_eq(injected(0), 8);
}

Test(inject_datagram, a_call_for_many_looks_at_its_time)
{
	struct timespec none = { 0 };
	char words[2];
	struct iovec vectors[2] = { { &words[0], 1 }, { &words[1], 1 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &vectors[0], .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &vectors[1], .msg_iovlen = 1 } } };

	begin("fault A = 127.0.0.1:PORT proto=udp drop calls=1000\n");
	peer_sends("ab");
	cr_expect_eq(hook_recvmmsg(fd, messages, 2, 0, &none), 1);
	cr_expect_eq(words[0], 'a');
}

static struct sockaddr_in closed_port(void)
{
	struct sockaddr_in address;

	cr_assert_eq(real()->close(peer_open(SOCK_DGRAM, &address)), 0);
	return address;
}

static void connect_to(const struct sockaddr_in *address)
{
	cr_assert_eq(hook_connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
}

static void expect_refused(ssize_t result)
{
	cr_expect_eq(result, -1);
	cr_expect_eq(errno, ECONNREFUSED);
}

static void expect_nothing(void)
{
	cr_expect_eq(hear(MSG_DONTWAIT), 0);
	cr_expect_eq(errno, EAGAIN);
}

/* What is sent to a closed port comes back as an error of the socket. */
static void expect_errors_under(const char *rules)
{
	struct pollfd entry = { .events = POLLIN };
	struct sockaddr_in nobody;
	char word = 'x';
	fd_set set;
	int error = 0;
	socklen_t size = sizeof(error);

	begin(rules);
	nobody = closed_port();
	connect_to(&nobody);
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	expect_refused(hook_recv(fd, &word, 1, 0));
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	entry.fd = fd;
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_eq(entry.revents, POLLERR);
	expect_refused(hook_recv(fd, &word, 1, MSG_DONTWAIT));
	expect_nothing();
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	cr_expect_eq(hook_select(fd + 1, &set, NULL, NULL, NULL), 1);
	expect_refused(hook_recv(fd, &word, 1, 0));
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	cr_expect_eq(hook_select(fd + 1, &set, NULL, NULL, NULL), 1);
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_eq(hook_getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	cr_expect_eq(error, ECONNREFUSED);
}

Test(inject_datagram, an_error_of_the_socket_is_told_where_a_rule_is_about_others)
{
	expect_errors_under("fault A = 127.0.0.9 proto=udp drop\n");
}

Test(inject_datagram, and_where_what_comes_is_lost)
{
	expect_errors_under("fault A = any proto=udp drop dir=in\n");
}

Test(inject_datagram, or_late)
{
	expect_errors_under("fault A = any proto=udp latency=20ms\n");
}

Test(inject_datagram, an_error_comes_before_what_is_late)
{
	struct sockaddr_in nobody;
	char word = 'x';

	begin("fault A = 127.0.0.1:PORT proto=udp latency=1h\n");
	peer_sends("a");
	expect_nothing();
	nobody = closed_port();
	connect_to(&nobody);
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	expect_refused(hook_recv(fd, &word, 1, 0));
}

Test(inject_datagram, what_is_lost_is_not_told_by_poll)
{
	struct pollfd entry = { .events = POLLIN };

	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=in calls=1..2\n");
	entry.fd = fd;
	peer_sends("ab");
	cr_expect_eq(hook_poll(&entry, 1, 0), 0);
	cr_expect_eq(injected(0), 2);
	peer_sends("c");
	cr_expect_eq(hook_poll(&entry, 1, -1), 1);
	cr_expect_eq(hear(0), 'c');
}

Test(inject_datagram, a_call_that_waits_ends_by_its_own_time_where_all_is_lost)
{
	struct timeval limit = { .tv_usec = 50000 };

	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=in\n");
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	peer_sends("ab");
	cr_expect_eq(hear(0), 0);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(injected(0), 2);
}

Test(inject_datagram, a_look_sees_nothing_that_is_lost)
{
	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=in calls=1\n");
	peer_sends("ab");
	cr_expect_eq(hear(MSG_PEEK), 'b');
	cr_expect_eq(hear(MSG_PEEK | MSG_DONTWAIT), 'b');
	cr_expect_eq(hear(0), 'b');
	expect_nothing();
	cr_expect_eq(injected(0), 1);
}

Test(inject_datagram, and_is_as_late_as_what_it_looks_at)
{
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT proto=udp latency=40ms\n");
	began_ns = clock_now_ns();
	peer_sends("a");
	cr_expect_eq(hear(MSG_PEEK), 'a');
	cr_expect_geq(clock_now_ns() - began_ns, 40 * MS_NS);
	cr_expect_eq(hear(0), 'a');
	cr_expect_eq(injected(0), 1);
}

Test(inject_datagram, nor_does_one_that_does_not_wait_see_what_is_late)
{
	begin("fault A = 127.0.0.1:PORT proto=udp latency=1h\n");
	peer_sends("a");
	cr_expect_eq(hear(MSG_PEEK | MSG_DONTWAIT), 0);
	cr_expect_eq(errno, EAGAIN);
}

Test(inject_datagram, a_look_at_what_is_doubled_makes_no_more_of_it)
{
	begin("fault A = 127.0.0.1:PORT proto=udp dup dir=in\n");
	peer_sends("a");
	cr_expect_eq(hear(MSG_PEEK), 'a');
	cr_expect_eq(hear(0), 'a');
	cr_expect_eq(hear(0), 'a');
	expect_nothing();
}

Test(inject_datagram, what_read_takes_comes_twice_too)
{
	char word = 0;

	begin("fault A = 127.0.0.1:PORT proto=udp dup dir=in\n");
	peer_sends("a");
	cr_expect_eq(hook_read(fd, &word, 1), 1);
	cr_expect_eq(word, 'a');
	word = 0;
	cr_expect_eq(hook_read(fd, &word, 1), 1);
	cr_expect_eq(word, 'a');
	expect_nothing();
}

Test(inject_datagram, what_the_kernel_refuses_it_refuses)
{
	struct sockaddr_in sender;
	char word;

	begin("fault A = 127.0.0.9 proto=udp drop\n");
	peer_sends("ab");
	cr_expect_eq(hook_recvfrom(fd, &word, 1, 0, (struct sockaddr *)&sender, (socklen_t *)8),
			-1);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(hook_recvfrom(fd, &word, 1, 0, (struct sockaddr *)&sender, NULL), -1);
	cr_expect_eq(errno, EFAULT);
}

Test(inject_datagram, many_that_are_sent_at_once_are_struck_one_by_one)
{
	char words[] = "abcd";
	struct iovec vectors[4];
	struct mmsghdr messages[4] = { 0 };

	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=out calls=2\n"
	      "fault B = 127.0.0.1:PORT proto=udp dup dir=out calls=3\n");
	for (size_t i = 0; i < 4; i++) {
		vectors[i] = (struct iovec){ &words[i], 1 };
		messages[i].msg_hdr = (struct msghdr){ .msg_name = &listener_address,
			.msg_namelen = sizeof(listener_address), .msg_iov = &vectors[i],
			.msg_iovlen = 1 };
	}
	cr_expect_eq(hook_sendmmsg(fd, messages, 4, 0), 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(messages[i].msg_len, 1);
	expect_at_peer("accd");
}

/* In a child whose system calls are not made, but told. */
#define CALLS_MAX 8

static long calls[CALLS_MAX];
static volatile sig_atomic_t call_count;

static void note_call(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)signal;
	if (call_count < CALLS_MAX)
		calls[call_count] = info->si_syscall;
	call_count++;
#if defined(__x86_64__)
	at->uc_mcontext.gregs[REG_RAX] = -EAGAIN;
#elif defined(__aarch64__)
	at->uc_mcontext.regs[0] = -EAGAIN;
#endif
}

#define TOLD(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)

static void tell_calls(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		TOLD(sendto), TOLD(recvfrom), TOLD(sendmsg), TOLD(recvmsg), TOLD(sendmmsg),
		TOLD(recvmmsg), TOLD(read), TOLD(write), TOLD(readv), TOLD(writev), TOLD(ppoll),
		TOLD(fcntl), TOLD(ioctl), TOLD(getsockopt), TOLD(setsockopt), TOLD(getpeername),
		TOLD(getpid), TOLD(openat),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	struct sigaction action = { .sa_sigaction = note_call, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(99);
}

static bool made_only(long number)
{
	bool is_so = call_count == 1 && calls[0] == number;

	call_count = 0;
	return is_so;
}

/* 0, or the number of the call that was not made as it is. */
static int call_changed(void)
{
	struct sockaddr *address = (struct sockaddr *)&listener_address;
	struct sockaddr_in sender;
	socklen_t length = sizeof(sender);
	char word = 'x';
	struct iovec vector = { &word, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &vector, .msg_iovlen = 1 } };

	tell_calls();
	hook_recv(fd, &word, 1, 0);
	if (!made_only(SYS_recvfrom))
		return 1;
	hook_recvfrom(fd, &word, 1, 0, (struct sockaddr *)&sender, &length);
	if (!made_only(SYS_recvfrom))
		return 2;
	hook_read(fd, &word, 1);
	if (!made_only(SYS_read))
		return 3;
	hook_recvmmsg(fd, &message, 1, 0, NULL);
	if (!made_only(SYS_recvmmsg))
		return 4;
	hook_send(fd, &word, 1, 0);
	if (!made_only(SYS_sendto))
		return 5;
	hook_sendto(fd, &word, 1, 0, address, sizeof(listener_address));
	if (!made_only(SYS_sendto))
		return 6;
	hook_write(fd, &word, 1);
	if (!made_only(SYS_write))
		return 7;
	hook_sendmmsg(fd, &message, 1, 0);
	return made_only(SYS_sendmmsg) ? 0 : 8;
}

static void expect_no_other_call(bool is_filter_seen)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (is_filter_seen)
			own_calls_forbid();
		_exit(call_changed());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "call %d", WEXITSTATUS(status));
}

Test(inject_datagram, calls_to_a_peer_that_no_rule_names_are_the_programs_own)
{
	begin("fault A = 127.0.0.9 proto=udp drop\nfault B = 127.0.0.9 proto=udp latency=1s\n");
	connect_to(&listener_address);
	expect_no_other_call(false);
}

Test(inject_datagram, and_those_that_a_rule_never_strikes)
{
	begin("fault A = 127.0.0.1:PORT proto=udp drop 0%\n");
	connect_to(&listener_address);
	expect_no_other_call(false);
	cr_expect_gt(suppressed(0, FAULT_BY_CHANCE), 0);
}

Test(inject_datagram, and_all_once_a_filter_was_seen)
{
	begin("fault A = 127.0.0.1:PORT proto=udp latency=1s\n"
	      "fault B = 127.0.0.1:PORT proto=udp drop dir=in\n"
	      "fault C = 127.0.0.1:PORT proto=udp dup dir=in\n");
	connect_to(&listener_address);
	expect_no_other_call(true);
	own_calls_forbid();
	hook_recv(fd, NULL, 0, MSG_DONTWAIT);
	cr_expect_gt(suppressed(1, FAULT_BY_MODE), 0);
}

Test(inject_datagram, then_what_is_sent_is_struck_nevertheless)
{
	char word = 'x';

	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=out calls=1\n");
	connect_to(&listener_address);
	own_calls_forbid();
	cr_expect_eq(hook_send(fd, &word, 1, 0), 1);
	cr_expect_eq(say('y'), 1);
	expect_at_peer("y");
}

Test(inject_datagram, what_came_before_anybody_looked_is_late_together_too)
{
	uint64_t began_ns;

	begin("fault A = 127.0.0.1:PORT proto=udp latency=1s\n");
	began_ns = clock_now_ns();
	peer_sends("abcdefgh");
	for (char i = 'a'; i < 'i'; i++) {
		cr_expect_eq(hear(0), i);
		cr_expect_geq(clock_now_ns() - began_ns, 900 * MS_NS);
	}
	cr_expect_lt(clock_now_ns() - began_ns, 8000 * MS_NS, "eight in a row take eight");
}

static void *hear_three(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		cr_expect_neq(hear(0), 0);
	return NULL;
}

/* One by one, that none is taken by what was decided of another. */
Test(inject_datagram, threads_that_wait_for_the_same_socket_take_what_was_decided)
{
	uint64_t began_ns;
	pthread_t threads[3];

	begin("fault A = 127.0.0.1:PORT proto=udp latency=100ms\n");
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, hear_three, NULL), 0);
	for (const char *word = "abcdefgh"; *word; word++) {
		peer_sends((char[]){ *word, '\0' });
		usleep(5000);
	}
	began_ns = clock_now_ns();
	peer_sends("i");
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_geq(clock_now_ns() - began_ns, 99 * MS_NS);
	cr_expect_eq(injected(0), 9);
}

Test(inject_datagram, an_error_is_told_once_and_then_what_it_came_in_place_of)
{
	begin("fault A = 127.0.0.1:PORT proto=udp errno=ECONNREFUSED dir=in per=call\n");
	peer_sends("ab");
	for (char word = 'a'; word <= 'b'; word++) {
		cr_expect_eq(hear(0), 0);
		cr_expect_eq(errno, ECONNREFUSED);
		cr_expect_eq(hear(0), word);
	}
	cr_expect_eq(injected(0), 2);
}

static struct mmsghdr many[4];
static char many_words[4];

static void begin_many(const char *rules)
{
	static struct iovec vectors[4];

	begin(rules);
	for (size_t i = 0; i < 4; i++) {
		vectors[i] = (struct iovec){ &many_words[i], 1 };
		many[i].msg_hdr.msg_iov = &vectors[i];
		many[i].msg_hdr.msg_iovlen = 1;
	}
	errno = 0;
}

Test(inject_datagram, an_error_behind_others_is_the_next_calls)
{
	begin_many("fault A = 127.0.0.1:PORT proto=udp errno=ECONNREFUSED dir=in calls=2\n");
	peer_sends("abc");
	cr_expect_eq(hook_recvmmsg(fd, many, 4, MSG_DONTWAIT, NULL), 1);
	cr_expect_eq(errno, 0);
	cr_expect_eq(hook_recvmmsg(fd, many, 4, MSG_DONTWAIT, NULL), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	errno = 0;
	cr_expect_eq(hook_recvmmsg(fd, many, 4, MSG_DONTWAIT, NULL), 2);
	cr_expect_eq(errno, 0);
	cr_expect_eq(many_words[0], 'b');
	cr_expect_eq(injected(0), 1);
}

Test(inject_datagram, and_so_is_one_behind_others_that_were_sent)
{
	begin_many("fault A = 127.0.0.1:PORT proto=udp errno=ECONNREFUSED dir=out calls=3\n");
	connect_to(&listener_address);
	memcpy(many_words, "abcd", 4);
	cr_expect_eq(hook_sendmmsg(fd, many, 4, 0), 2);
	cr_expect_eq(errno, 0);
	cr_expect_eq(hook_sendmmsg(fd, &many[2], 2, 0), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(hook_sendmmsg(fd, &many[2], 2, 0), 2);
	expect_at_peer("abcd");
	cr_expect_eq(injected(0), 1);
}

Test(inject_datagram, a_rule_that_decides_once_strikes_all)
{
	begin("fault A = 127.0.0.1:PORT proto=udp drop dir=out per=conn calls=1\n");
	for (const char *word = "abc"; *word; word++)
		cr_expect_eq(say(*word), 1);
	expect_at_peer("");
	cr_expect_eq(injected(0), 3);
	cr_expect_eq(hook_close(fd), 0);
	fd = hook_socket(AF_INET, SOCK_DGRAM, 0);
	cr_expect_eq(say('d'), 1);
	expect_at_peer("d");
}
