/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

int hook_poll(struct pollfd *entries, nfds_t count, int timeout);
ssize_t hook_sendto(int fd, const void *data, size_t size, int flags,
		const struct sockaddr *address, socklen_t length);
ssize_t hook_recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *address,
		socklen_t *length);

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
