/* SPDX-License-Identifier: MIT */
/* The real connect is a fake that says where it was sent; sockets are real, so that their families
 * are. */
#include "shim/fallback.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/control.h"
#include "shim/exchange_awaited.h"
#include "shim/fd_table.h"
#include "shim/real.h"
#include "shim/runtime.h"

__typeof__(socket) hook_socket;
__typeof__(connect) hook_connect;
__typeof__(send) hook_send;
__typeof__(close) hook_close;

#define TARGET 9

/* What connects come to: those to the target, those to nobody, and all others. */
static int target_error, fallback_error;
static int target_connects, disconnects, fallback_connects;
static int interruptions; /* of those to others */
static long bounded_ms;	  /* the last of them */
static bool is_connected, is_late; /* a second peer is one too many; the target comes too late */
static struct sockaddr_storage last;

/* As the timer does. */
static void be_late(int fd)
{
	struct exchange *exchange = &fd_table_find(fd)->exchange;

	cr_assert(exchange_expiring(exchange));
	cr_assert_eq(exchange_expire(exchange, true).ended, OUTCOME_TIMEOUT);
}

static long send_timeout_ms(int fd)
{
	struct timeval time = { 0 };
	socklen_t size = sizeof(time);

	getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, &size);
	return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static int fake_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	in_port_t port = ((const struct sockaddr_in *)address)->sin_port;
	int error = port == htons(TARGET) ? target_error : fallback_error;

	if (address->sa_family == AF_UNSPEC) {
		disconnects++;
		is_connected = false;
		return 0;
	}
	if (port == htons(TARGET) && is_late)
		be_late(fd);
	else if (port != htons(TARGET) && is_connected)
		error = EISCONN;
	if (port != htons(TARGET))
		bounded_ms = send_timeout_ms(fd);
	if (port != htons(TARGET) && interruptions && interruptions--)
		error = EINTR;
	cr_assert_leq(length, sizeof(last));
	memset(&last, 0, sizeof(last));
	memcpy(&last, address, length);
	if (port == htons(TARGET))
		target_connects++;
	else
		fallback_connects++;
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static ssize_t fake_send(int fd, const void *data, size_t size, int flags)
{
	(void)fd, (void)data, (void)flags;
	return (ssize_t)size;
}

static void start_with(const char *settings)
{
	char rules[256];

	real();
	real_table.connect = fake_connect;
	real_table.send = fake_send;
	snprintf(rules, sizeof(rules), "break PAY = any:%d %s\n", TARGET, settings);
	config_load_text(&runtime.config, "test", rules, strlen(rules));
	cr_assert_eq(runtime.config.problem_count, 0, "%s", runtime.config.problems[0].text);
	runtime.pid = (uint32_t)getpid();
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cr_assert(fd_table_start());
	atomic_store(&runtime.is_active, true);
}

/* Each with a rule of its own. */
TestSuite(fallback, .timeout = 60);

static struct cell *cell_of(const char *host)
{
	struct address address;
	struct endpoint endpoint = { .address = &address, .port = TARGET };

	cr_assert(address_parse(host, &address));
	return runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			NULL);
}

static uint64_t total(enum cell_total which)
{
	return atomic_load(&cell_of("127.0.0.1")->totals[which]);
}

static uint64_t outcomes(void)
{
	return total(CELL_TOTAL_success) + total(CELL_TOTAL_failure) + total(CELL_TOTAL_timeout) +
	       total(CELL_TOTAL_cancelled);
}

static int fresh(int family)
{
	int fd = hook_socket(family, SOCK_STREAM, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static int fresh_non_blocking(void)
{
	int fd = hook_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static int connect_v4(int fd)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(TARGET) };

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	errno = 0;
	return hook_connect(fd, (struct sockaddr *)&peer, sizeof(peer));
}

static int connect_v6(int fd, const char *host)
{
	struct sockaddr_in6 peer = { .sin6_family = AF_INET6, .sin6_port = htons(TARGET) };

	cr_assert_eq(inet_pton(AF_INET6, host, &peer.sin6_addr), 1);
	errno = 0;
	return hook_connect(fd, (struct sockaddr *)&peer, sizeof(peer));
}

static void expect_last(const char *expected)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&last;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&last;
	char host[INET6_ADDRSTRLEN], text[80];

	if (last.ss_family == AF_INET)
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
	snprintf(text, sizeof(text), "%s %d", host, ntohs(v4->sin_port));
	cr_expect_str_eq(text, expected);
}

Test(fallback, a_connect_that_is_refused_goes_there)
{
	start_with("force=open fallback=10.0.0.7:81");
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	expect_last("10.0.0.7 81");
	cr_expect_eq(target_connects, 0);
	cr_expect_eq(total(CELL_TOTAL_fallback), 1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
}

Test(fallback, a_connect_that_fails_goes_there_and_is_a_failure)
{
	start_with("fallback=10.0.0.7:81");
	target_error = ECONNREFUSED;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	expect_last("10.0.0.7 81");
	cr_expect_eq(total(CELL_TOTAL_failure), 1);
	cr_expect_eq(total(CELL_TOTAL_fallback), 1);
	cr_expect_eq(outcomes(), 1);
}

Test(fallback, a_connect_that_is_late_goes_there)
{
	start_with("fallback=10.0.0.7:81");
	target_error = ETIMEDOUT;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_expect_eq(total(CELL_TOTAL_fallback), 1);
}

Test(fallback, a_connect_without_a_place_goes_there)
{
	start_with("concurrency=1 fallback=10.0.0.7:81");
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(fallback_connects, 1);
	cr_expect_eq(total(CELL_TOTAL_rejected), 1);
}

Test(fallback, an_error_that_says_nothing_of_the_peer_is_the_programs)
{
	static const int errors[] = { EADDRNOTAVAIL, EACCES, ENETUNREACH, EINPROGRESS, EINTR,
		EALREADY, EBADF };

	start_with("fallback=10.0.0.7:81");
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		target_error = errors[i];
		cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
		cr_expect_eq(errno, errors[i]);
	}
	cr_expect_eq(fallback_connects, 0);
}

Test(fallback, what_a_rule_calls_a_failure_is_one_here_too)
{
	start_with("fallback=10.0.0.7:81 fail=EACCES ignore=ECONNREFUSED error=EPERM");
	target_error = EACCES;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	target_error = ECONNREFUSED;
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(fallback_connects, 1);
}

Test(fallback, a_refusal_by_any_error_goes_there)
{
	start_with("force=open fallback=10.0.0.7:81 error=ENETUNREACH");
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(fallback_connects, 1);
}

Test(fallback, without_one_the_error_stays)
{
	start_with("force=open");
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(total(CELL_TOTAL_fallback), 0);
}

Test(fallback, where_it_only_watches_nothing_goes_there)
{
	start_with("fallback=10.0.0.7:81");
	runtime.observe = true;
	target_error = ECONNREFUSED;
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(total(CELL_TOTAL_fallback), 0);
}

/* What comes of it. */

Test(fallback, its_outcomes_are_nobodys)
{
	int fd;

	start_with("force=open fallback=10.0.0.7:81");
	fd = fresh(AF_INET);
	cr_expect_eq(connect_v4(fd), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7, "judged by no circuit");
	hook_close(fd);
	cr_expect_eq(outcomes(), 0);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
}

Test(fallback, its_failure_is_the_programs_and_not_tried_again)
{
	start_with("fallback=10.0.0.7:81");
	target_error = ETIMEDOUT;
	fallback_error = EHOSTUNREACH;
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, EHOSTUNREACH);
	cr_expect_eq(target_connects, 1);
	cr_expect_eq(fallback_connects, 1);
	cr_expect_eq(total(CELL_TOTAL_timeout), 1);
	cr_expect_eq(outcomes(), 1);
}

Test(fallback, what_is_under_way_there_ends_as_it_will)
{
	int fd;

	start_with("force=open fallback=10.0.0.7:81");
	fallback_error = EINPROGRESS;
	fd = fresh(AF_INET);
	cr_expect_eq(connect_v4(fd), -1);
	cr_expect_eq(errno, EINPROGRESS);
	target_error = ECONNREFUSED;
	cr_expect_eq(connect_v4(fd), -1, "asks how it went");
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(fallback_connects, 1);
	cr_expect_eq(outcomes(), 0);
}

Test(fallback, it_may_be_a_target_of_another_rule_and_is_not_judged)
{
	static const char more[] = "break SELF = 10.0.0.7:81 force=open\n";

	start_with("force=open fallback=10.0.0.7:81");
	config_load_text(&runtime.config, "test", more, strlen(more));
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
}

/* What has a peer, or had one. */

static int connected_and_late(void)
{
	int fd;

	start_with("timeout=1s volume=1000 fallback=10.0.0.7:81");
	fd = fresh(AF_INET);
	cr_assert_eq(connect_v4(fd), 0);
	cr_assert_eq(hook_send(fd, "request", 7, 0), 7);
	be_late(fd);
	return fd;
}

Test(fallback, a_connection_that_was_late_stays_dead)
{
	int fd = connected_and_late();

	cr_expect_eq(connect_v4(fd), -1, "what it was told already");
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), -1, "and nothing is sent");
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(target_connects, 1);
	cr_expect_eq(total(CELL_TOTAL_fallback), 0);
}

Test(fallback, what_has_a_peer_is_not_sent_elsewhere)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(TARGET)};
	int fd = connected_and_late();

	errno = ETIMEDOUT;
	cr_expect_eq(fallback_connect(fd, (struct sockaddr *)&peer, sizeof(peer)), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(fallback_connects, 0);
	cr_expect(exchange_has(&fd_table_find(fd)->exchange, EXCHANGE_TIMED_OUT));
}

Test(fallback, a_connection_that_was_cut_stays_dead)
{
	int fd;

	start_with("fallback=10.0.0.7:81");
	fd = fresh(AF_INET);
	cr_assert_eq(connect_v4(fd), 0);
	exchange_set(&fd_table_find(fd)->exchange, EXCHANGE_CUT);
	target_error = ECONNRESET;
	cr_expect_eq(connect_v4(fd), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), -1);
	cr_expect_eq(errno, ECONNRESET);
}

Test(fallback, an_attempt_of_an_earlier_call_ends_as_it_will)
{
	int fd;

	start_with("fallback=10.0.0.7:81");
	fd = fresh_non_blocking();
	target_error = EINPROGRESS;
	cr_expect_eq(connect_v4(fd), -1);
	target_error = ECONNREFUSED;
	cr_expect_eq(connect_v4(fd), -1, "how it went");
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(total(CELL_TOTAL_failure), 1);
}

Test(fallback, an_attempt_that_was_late_is_late_once)
{
	int fd;

	start_with("timeout=1s volume=1000 fallback=10.0.0.7:81");
	fd = fresh_non_blocking();
	target_error = EINPROGRESS;
	cr_expect_eq(connect_v4(fd), -1);
	be_late(fd);
	cr_expect_eq(connect_v4(fd), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(fallback_connects, 0);
}

Test(fallback, an_attempt_that_is_late_in_its_own_call_goes_there)
{
	start_with("timeout=1s volume=1000 fallback=10.0.0.7:81");
	is_late = true;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(fallback_connects, 1);
	cr_expect_eq(disconnects, 0);
}

Test(fallback, an_attempt_that_was_completed_when_it_was_late_goes_there)
{
	int fd;

	start_with("timeout=1s volume=1000 fallback=10.0.0.7:81");
	is_late = is_connected = true;
	fd = fresh(AF_INET);
	cr_expect_eq(connect_v4(fd), 0);
	expect_last("10.0.0.7 81");
	cr_expect_eq(disconnects, 1);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
}

Test(fallback, what_was_closed_meanwhile_is_not_sent_there)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(TARGET)};
	int fd, other;

	start_with("timeout=1s volume=1000 fallback=10.0.0.7:81");
	fd = fresh_non_blocking();
	target_error = EINPROGRESS;
	cr_expect_eq(connect_v4(fd), -1);
	be_late(fd);
	other = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(syscall(SYS_dup2, other, fd), fd, "out of sight");
	errno = ETIMEDOUT;
	cr_expect_eq(fallback_connect(fd, (struct sockaddr *)&peer, sizeof(peer)), -1);
	cr_expect_eq(fallback_connects, 0);
}

/* Families. */

Test(fallback, a_socket_of_ipv6_reaches_addresses_of_ipv4)
{
	start_with("force=open fallback=10.0.0.7:81");
	cr_expect_eq(connect_v6(fresh(AF_INET6), "::1"), 0);
	expect_last("::ffff:10.0.0.7 81");
}

Test(fallback, a_socket_of_ipv6_reaches_its_own)
{
	start_with("force=open fallback=[2001:db8::7]:82");
	cr_expect_eq(connect_v6(fresh(AF_INET6), "::ffff:127.0.0.1"), 0);
	expect_last("2001:db8::7 82");
}

Test(fallback, a_socket_of_ipv4_reaches_its_own_alone)
{
	start_with("force=open fallback=[2001:db8::7]:82");
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(fallback_connects, 0);
	cr_expect_eq(total(CELL_TOTAL_fallback), 0);
}

Test(fallback, one_that_no_way_leads_to_is_no_fallback)
{
	start_with("volume=1000 fallback=10.0.0.7:81 fallback-concurrency=1");
	target_error = ECONNREFUSED;
	fallback_error = ENETUNREACH;
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(connect_v6(fresh(AF_INET6), "::1"), -1);
		cr_expect_eq(errno, ECONNREFUSED, "as without one");
	}
	cr_expect_eq(fallback_connects, 3, "and it holds no place");
	cr_expect_eq(atomic_load(&cell_of("::1")->totals[CELL_TOTAL_fallback]), 0);
	cr_expect_eq(atomic_load(&cell_of("::1")->totals[CELL_TOTAL_failure]), 3);
}

/* Its own time. */

Test(fallback, one_that_hangs_is_bounded_as_its_target_is)
{
	int fd;

	start_with("force=open timeout=1h fallback=10.0.0.7:81 fallback-concurrency=1");
	fallback_error = EINPROGRESS;
	fd = fresh(AF_INET);
	cr_expect_eq(connect_v4(fd), -1, "what the kernel says when that time is over");
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_geq(bounded_ms, 3600 * 1000);
	cr_expect_eq(send_timeout_ms(fd), 0, "the program's own is back");
	cr_expect_eq(disconnects, 1);
	fallback_error = 0;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0, "its place is free");
}

Test(fallback, one_that_is_interrupted_goes_on)
{
	start_with("force=open timeout=1h fallback=10.0.0.7:81");
	interruptions = 2;
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(fallback_connects, 3);
	cr_expect_leq(bounded_ms, 3600 * 1000 + 1000);
	interruptions = 1;
	fallback_error = EALREADY;
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1, "its time is over when it is made again");
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect_eq(total(CELL_TOTAL_fallback), 2);
}

Test(fallback, one_that_does_not_block_is_not_bounded)
{
	start_with("force=open timeout=1h fallback=10.0.0.7:81");
	fallback_error = EINPROGRESS;
	cr_expect_eq(connect_v4(fresh_non_blocking()), -1);
	cr_expect_eq(errno, EINPROGRESS);
	cr_expect_eq(bounded_ms, 0);
	cr_expect_eq(disconnects, 0);
}

Test(fallback, without_a_timeout_it_is_not_bounded)
{
	start_with("force=open fallback=10.0.0.7:81");
	interruptions = 1;
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, EINTR);
	cr_expect_eq(bounded_ms, 0);
}

/* Its own limit. */

Test(fallback, it_has_a_limit_of_its_own)
{
	int held;

	start_with("force=open fallback=10.0.0.7:81 fallback-concurrency=1");
	held = fresh(AF_INET);
	cr_expect_eq(connect_v4(held), 0);
	cr_expect_eq(connect_v4(fresh(AF_INET)), -1);
	cr_expect_eq(errno, ECONNREFUSED, "as without one");
	cr_expect_eq(total(CELL_TOTAL_rejected), 0);
	cr_expect_eq(total(CELL_TOTAL_fallback), 1);
	hook_close(held);
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	cr_expect_eq(total(CELL_TOTAL_fallback), 2);
}

Test(fallback, what_failed_there_holds_no_place)
{
	start_with("force=open fallback=10.0.0.7:81 fallback-concurrency=1");
	fallback_error = ECONNREFUSED;
	for (int i = 0; i < 9; i++)
		connect_v4(fresh(AF_INET));
	cr_expect_eq(fallback_connects, 9);
}

Test(fallback, what_is_under_way_there_holds_its_place)
{
	start_with("force=open fallback=10.0.0.7:81 fallback-concurrency=1");
	fallback_error = EINPROGRESS;
	connect_v4(fresh(AF_INET));
	connect_v4(fresh(AF_INET));
	cr_expect_eq(fallback_connects, 1);
}

Test(fallback, the_targets_places_are_not_its_own)
{
	start_with("concurrency=1 fallback=10.0.0.7:81 fallback-concurrency=2");
	cr_expect_eq(connect_v4(fresh(AF_INET)), 0);
	for (int i = 0; i < 4; i++)
		connect_v4(fresh(AF_INET));
	cr_expect_eq(target_connects, 1);
	cr_expect_eq(fallback_connects, 2);
}

Test(fallback, nothing_goes_there_before_start)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(TARGET) };
	int fd;

	start_with("force=open fallback=10.0.0.7:81");
	fd = fresh(AF_INET);
	atomic_store(&runtime.is_active, false);
	errno = ECONNREFUSED;
	cr_expect_eq(fallback_connect(fd, (struct sockaddr *)&peer, sizeof(peer)), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(fallback_connects, 0);
}
