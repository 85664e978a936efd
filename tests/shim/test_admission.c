/* SPDX-License-Identifier: MIT */
/* The real connect is a fake that succeeds at once; sockets are real, so that they block or not. */
#include "shim/admission.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/control.h"
#include "shim/gate_option.h"
#include "shim/holder.h"
#include "shim/own_call.h"
#include "shim/real.h"
#include "shim/runtime.h"

#define MS_NS 1000000ull

__typeof__(socket) hook_socket;
__typeof__(connect) hook_connect;
__typeof__(send) hook_send;
__typeof__(recv) hook_recv;
__typeof__(close) hook_close;

static _Atomic int questions; /* to a socket, whether it blocks */
static _Atomic int connects;
static int (*libc_fcntl)(int fd, int command, ...);

static int fake_fcntl(int fd, int command, ...)
{
	cr_assert_eq(command, F_GETFL);
	atomic_fetch_add(&questions, 1);
	return libc_fcntl(fd, command);
}

static int fake_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	atomic_fetch_add(&connects, 1);
	return 0;
}

static int fail_to_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	errno = ECONNREFUSED;
	return -1;
}

static int begin_to_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	(void)fd, (void)address, (void)length;
	errno = EINPROGRESS;
	return -1;
}

static ssize_t fail_to_receive(int fd, void *data, size_t size, int flags)
{
	(void)fd, (void)data, (void)size, (void)flags;
	errno = ECONNREFUSED;
	return -1;
}

static ssize_t fake_send(int fd, const void *data, size_t size, int flags)
{
	(void)fd, (void)data, (void)flags;
	return (ssize_t)size;
}

static ssize_t fake_recv(int fd, void *data, size_t size, int flags)
{
	(void)fd, (void)flags;
	memset(data, 0, size);
	return (ssize_t)size;
}

static void start_with(const char *settings)
{
	char rules[256];

	real();
	libc_fcntl = fcntl;
	real_table.fcntl = fake_fcntl;
	real_table.connect = fake_connect;
	real_table.send = fake_send;
	real_table.recv = fake_recv;
	snprintf(rules, sizeof(rules), "break PAY = 127.0.0.1:9 %s\n", settings);
	config_load_text(&runtime.config, "test", rules, strlen(rules));
	cr_assert_eq(runtime.config.problem_count, 0, "%s", runtime.config.problems[0].text);
	runtime.pid = (uint32_t)getpid();
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cr_assert(fd_table_start());
	admission_start();
	atomic_store(&runtime.is_active, true);
}

/* Each with a rule of its own. */
TestSuite(admission, .timeout = 60);

static struct cell *the_cell(uint64_t *ret_hash)
{
	struct address address;
	struct endpoint endpoint = { .address = &address, .port = 9 };

	cr_assert(address_parse("127.0.0.1", &address));
	return runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			ret_hash);
}

static uint64_t total(enum cell_total which)
{
	return atomic_load(&the_cell(NULL)->totals[which]);
}

static uint32_t in_flight(enum bulkhead_purpose purpose)
{
	struct holder table = { &runtime.segment->places, &runtime.segment->seats, 0, 0 };
	struct bulkhead bulkhead;
	uint64_t hash;

	the_cell(&hash);
	bulkhead = bulkhead_of(&table, hash, purpose);
	return bulkhead_in_flight(&bulkhead);
}

static struct breaker the_breaker(void)
{
	return runtime_breaker(&runtime.config.rules[0], the_cell(NULL));
}

static int fresh(int flags)
{
	int fd = hook_socket(AF_INET, SOCK_STREAM | flags, 0);

	cr_assert_geq(fd, 0);
	return fd;
}

static int connect_to(int fd)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(9) };

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	errno = 0;
	return hook_connect(fd, (struct sockaddr *)&peer, sizeof(peer));
}

/* A call that goes on. */
static int holding(void)
{
	int fd = fresh(0);

	cr_assert_eq(connect_to(fd), 0);
	return fd;
}

static void expect_refused(int fd)
{
	cr_expect_eq(connect_to(fd), -1);
	cr_expect_eq(errno, ECONNREFUSED);
}

Test(admission, a_rule_without_limits_asks_for_no_place)
{
	struct seat_table nobody = { { 0 } };

	start_with("queue=9");
	for (int i = 0; i < 100; i++)
		holding();
	cr_expect_eq(atomic_load(&connects), 100);
	cr_expect_eq(atomic_load(&questions), 0);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	cr_expect_eq(memcmp(&runtime.segment->seats, &nobody, sizeof(nobody)), 0,
			"not even a seat");
}

Test(admission, a_call_holds_its_place_until_its_answer)
{
	char data[8];
	int fd;

	start_with("concurrency=2");
	fd = holding();
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), 8);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1, "the next one");
	hook_close(fd);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
}

Test(admission, a_connection_holds_its_place_until_it_is_closed)
{
	char data[8];
	int fd;

	start_with("connections=1");
	fd = holding();
	hook_send(fd, "request", 7, 0);
	hook_recv(fd, data, sizeof(data), 0);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	hook_close(fd);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 0);
}

static void expect_next_attempt(int fd)
{
	real_table.connect = fake_connect;
	cr_expect_eq(connect_to(fd), 0);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	expect_refused(fresh(0));
}

Test(admission, a_connect_that_fails_is_no_connection)
{
	int fd;

	start_with("connections=1");
	fd = fresh(0);
	real_table.connect = fail_to_connect;
	cr_expect_eq(connect_to(fd), -1);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 0);
	expect_next_attempt(fd);
}

Test(admission, a_connect_that_is_told_to_have_failed_is_no_connection)
{
	int error = ECONNREFUSED;
	int fd;

	start_with("connections=1");
	fd = fresh(SOCK_NONBLOCK);
	real_table.connect = begin_to_connect;
	cr_expect_eq(connect_to(fd), -1);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	gate_so_error(fd, &error);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 0);
	expect_next_attempt(fd);
}

Test(admission, an_attempt_is_not_in_the_way_of_the_next_one_on_its_socket)
{
	char data[8];
	int fd;

	start_with("connections=1");
	fd = fresh(SOCK_NONBLOCK);
	real_table.connect = begin_to_connect;
	real_table.recv = fail_to_receive;
	cr_expect_eq(connect_to(fd), -1);
	cr_expect_eq(hook_recv(fd, data, sizeof(data), 0), -1);
	expect_next_attempt(fd);
}

Test(admission, what_cannot_begin_after_all_gives_everything_back)
{
	struct asking asking = { .fd = -1, .is_connect = true };
	struct admitted admitted;

	start_with("concurrency=1 connections=1");
	asking.rule = &runtime.config.rules[0];
	asking.cell = the_cell(&asking.cell_hash);
	cr_assert(admission_ask(&asking, clock_now_ns(), &admitted));
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	admission_return(&asking, &admitted);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 0);
	cr_expect_eq(total(CELL_TOTAL_rejected), 0);
}

/* The order: the circuit, the bulkhead, the slot of a probe. */

Test(admission, an_open_circuit_refuses_before_a_full_bulkhead)
{
	struct breaker breaker;

	start_with("concurrency=1 connections=1 sleep=1h");
	holding();
	breaker = the_breaker();
	control_trip(&breaker, clock_now_ns());
	expect_refused(fresh(0));
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_expect_eq(total(CELL_TOTAL_rejected), 0);
}

Test(admission, an_open_circuit_takes_no_place)
{
	struct breaker breaker;

	start_with("concurrency=1 connections=1 sleep=1h");
	breaker = the_breaker();
	control_trip(&breaker, clock_now_ns());
	expect_refused(fresh(0));
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 0);
}

static void expect_no_probe_spent(int held)
{
	struct breaker breaker = the_breaker();

	control_half(&breaker, clock_now_ns());
	expect_refused(fresh(0));
	cr_expect_eq(total(CELL_TOTAL_rejected), 1);
	cr_expect_eq(breaker_state(&breaker, clock_now_ns()), CIRCUIT_HALF_OPEN);
	hook_close(held);
	cr_expect_eq(connect_to(fresh(0)), 0, "the slot was not taken");
}

Test(admission, a_full_bulkhead_takes_no_probe)
{
	start_with("concurrency=1 sleep=1h probes=1 rejects=ignore");
	expect_no_probe_spent(holding());
}

Test(admission, too_many_connections_take_no_probe)
{
	start_with("connections=1 sleep=1h probes=1 rejects=ignore");
	expect_no_probe_spent(holding());
	cr_expect_eq(total(CELL_TOTAL_rejected_connections), 1);
}

/* An open circuit whose sleep is over: the next call decides that it is half-open. */
Test(admission, too_many_connections_take_no_probe_of_a_circuit_that_wakes)
{
	struct breaker breaker;
	uint64_t now_ns;

	start_with("connections=1 sleep=1ms probes=1 rejects=ignore");
	holding();
	breaker = the_breaker();
	now_ns = clock_now_ns();
	control_trip(&breaker, now_ns);
	while (clock_now_ns() - now_ns < 3 * MS_NS)
		sched_yield();
	expect_refused(fresh(0));
	cr_expect_eq(atomic_load(&connects), 1);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	cr_expect_eq(total(CELL_TOTAL_rejected_connections), 1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 0);
	cr_expect_eq(total(CELL_TOTAL_unused), 0, "nor given and taken back");
}

Test(admission, too_many_connections_are_refused_by_a_circuit_forced_open)
{
	struct breaker breaker;

	start_with("connections=1");
	holding();
	breaker = the_breaker();
	control_force(&breaker, FORCE_OPEN, clock_now_ns());
	expect_refused(fresh(0));
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_expect_eq(total(CELL_TOTAL_rejected), 0);
}

Test(admission, a_probe_that_is_refused_its_slot_holds_no_place)
{
	struct breaker breaker;

	start_with("concurrency=9 connections=9 sleep=1h probes=1");
	breaker = the_breaker();
	control_half(&breaker, clock_now_ns());
	holding();
	expect_refused(fresh(0));
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
}

/* Each reason has its total. */

static void expect_totals(uint64_t all, uint64_t queued, uint64_t connections)
{
	cr_expect_eq(total(CELL_TOTAL_rejected), all);
	cr_expect_eq(total(CELL_TOTAL_rejected_queue), queued);
	cr_expect_eq(total(CELL_TOTAL_rejected_connections), connections);
	cr_expect_eq(total(CELL_TOTAL_rejected_pool), 0);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 0);
}

Test(admission, a_call_too_many_is_rejected)
{
	start_with("concurrency=1");
	holding();
	expect_refused(fresh(0));
	cr_expect_eq(atomic_load(&connects), 1);
	expect_totals(1, 0, 0);
}

Test(admission, a_connection_too_many_is_rejected_and_counted_so)
{
	start_with("connections=1 concurrency=9");
	holding();
	expect_refused(fresh(0));
	expect_totals(1, 0, 1);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
}

Test(admission, a_call_on_an_open_connection_is_none_more)
{
	char data[8];
	int fd;

	start_with("connections=1");
	fd = holding();
	hook_send(fd, "request", 7, 0);
	hook_recv(fd, data, sizeof(data), 0);
	cr_expect_eq(hook_send(fd, "request", 7, 0), 7);
	expect_totals(0, 0, 0);
}

Test(admission, who_waited_in_vain_is_rejected_and_counted_so)
{
	uint64_t began_ns;

	start_with("concurrency=1 queue=1 queue-wait=30ms");
	holding();
	began_ns = clock_now_ns();
	expect_refused(fresh(0));
	cr_expect_geq(clock_now_ns() - began_ns, 30 * MS_NS);
	expect_totals(1, 1, 0);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
}

Test(admission, who_waited_in_vain_to_connect_is_no_other)
{
	start_with("connections=1 queue=1 queue-wait=30ms");
	holding();
	expect_refused(fresh(0));
	expect_totals(1, 1, 0);
}

Test(admission, rejected_calls_open_the_circuit)
{
	struct breaker breaker;

	start_with("concurrency=1 volume=2 sleep=1h");
	holding();
	expect_refused(fresh(0));
	expect_refused(fresh(0));
	breaker = the_breaker();
	cr_expect_eq(breaker_state(&breaker, clock_now_ns()), CIRCUIT_OPEN);
	cr_expect_eq(total(CELL_TOTAL_trips), 1);
}

Test(admission, ignored_rejections_open_nothing)
{
	struct breaker breaker;

	start_with("concurrency=1 volume=2 sleep=1h rejects=ignore");
	holding();
	for (int i = 0; i < 9; i++)
		expect_refused(fresh(0));
	breaker = the_breaker();
	cr_expect_eq(breaker_state(&breaker, clock_now_ns()), CIRCUIT_CLOSED);
	expect_totals(9, 0, 0);
}

/* By hand. */

Test(admission, a_limit_set_by_hand_beats_the_rule)
{
	start_with("concurrency=9");
	atomic_store(&the_cell(NULL)->concurrency, 1);
	holding();
	expect_refused(fresh(0));
	atomic_store(&the_cell(NULL)->concurrency, CELL_UNLIMITED);
	for (int i = 0; i < 20; i++)
		holding();
}

Test(admission, a_limit_set_by_hand_holds_where_the_rule_has_none)
{
	start_with("");
	atomic_store(&the_cell(NULL)->concurrency, 1);
	holding();
	expect_refused(fresh(0));
}

Test(admission, where_it_only_watches_nobody_waits_or_is_refused)
{
	start_with("concurrency=1 connections=1 queue=1 queue-wait=1h");
	runtime.observe = true;
	for (int i = 0; i < 9; i++)
		holding();
	cr_expect_eq(atomic_load(&questions), 0);
	cr_expect_eq(atomic_load(&connects), 9);
}

Test(admission, where_it_only_watches_what_would_be_rejected_is_counted)
{
	struct breaker breaker;

	start_with("concurrency=2 volume=7 sleep=1h");
	runtime.observe = true;
	for (int i = 0; i < 8; i++)
		holding();
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 2);
	expect_totals(6, 0, 0);
	holding();
	breaker = the_breaker();
	cr_expect_eq(breaker_state(&breaker, clock_now_ns()), CIRCUIT_OPEN, "and decides");
	cr_expect_eq(atomic_load(&connects), 9);
}

Test(admission, where_it_only_watches_connections_are_counted_too)
{
	char data[8];
	int held;

	start_with("connections=1");
	runtime.observe = true;
	held = holding();
	holding();
	expect_totals(1, 0, 1);
	hook_send(held, "request", 7, 0);
	cr_expect_eq(hook_recv(held, data, sizeof(data), 0), 8);
	cr_expect_eq(hook_send(held, "request", 7, 0), 7);
	hook_close(held);
	holding();
	expect_totals(1, 0, 1);
}

Test(admission, where_it_only_watches_a_send_too_many_is_counted_and_sent)
{
	char data[8];
	int kept;

	start_with("concurrency=1");
	runtime.observe = true;
	kept = holding();
	hook_send(kept, "request", 7, 0);
	hook_recv(kept, data, sizeof(data), 0);
	holding();
	cr_expect_eq(hook_send(kept, "request", 7, 0), 7);
	cr_expect_eq(hook_recv(kept, data, sizeof(data), 0), 8);
	expect_totals(1, 0, 0);
}

/* Who does not block is never put to sleep: these would wait for an hour. */

static void start_queue(void)
{
	start_with("concurrency=1 queue=1 queue-wait=1h");
	holding();
}

Test(admission, a_socket_made_nonblocking_never_waits)
{
	start_queue();
	expect_refused(fresh(SOCK_NONBLOCK));
	expect_totals(1, 0, 0);
}

Test(admission, a_socket_set_nonblocking_later_never_waits)
{
	int fd;

	start_queue();
	fd = fresh(0);
	cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	expect_refused(fd);
	expect_totals(1, 0, 0);
}

Test(admission, a_send_that_may_not_wait_never_does)
{
	char data[8];
	int kept;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	kept = holding();
	hook_send(kept, "request", 7, 0);
	hook_recv(kept, data, sizeof(data), 0);
	holding();
	cr_expect_eq(hook_send(kept, "request", 7, MSG_DONTWAIT), -1);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(atomic_load(&questions), 0, "its flag says all");
	expect_totals(1, 0, 0);
}

static int no_fcntl(int fd, int command, ...)
{
	(void)fd, (void)command;
	errno = EBADF;
	return -1;
}

Test(admission, a_socket_that_cannot_be_asked_never_waits)
{
	struct asking asking = { .fd = -1, .is_connect = true };
	struct admitted admitted;

	start_queue();
	real_table.fcntl = no_fcntl;
	asking.rule = &runtime.config.rules[0];
	asking.cell = the_cell(&asking.cell_hash);
	errno = EDOM;
	cr_expect_not(admission_ask(&asking, clock_now_ns(), &admitted));
	cr_expect_eq(errno, EDOM);
	expect_totals(1, 0, 0);
}

Test(admission, under_a_filter_nobody_waits_or_is_asked)
{
	start_queue();
	own_calls_forbid();
	expect_refused(fresh(0));
	cr_expect_eq(atomic_load(&questions), 0);
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
	expect_totals(1, 0, 0);
}

/* The queue. */

struct waiter {
	pthread_t thread;
	_Atomic int result; /* 2: not yet */
	int fd;
};

static void *wait_in_line(void *argument)
{
	struct waiter *waiter = argument;

	waiter->fd = fresh(0);
	atomic_store(&waiter->result, connect_to(waiter->fd));
	return NULL;
}

static void begin(struct waiter *waiter, void *(*run)(void *))
{
	atomic_store(&waiter->result, 2);
	cr_assert_eq(pthread_create(&waiter->thread, NULL, run, waiter), 0);
}

static void wait_for_line(uint32_t length)
{
	while (in_flight(BULKHEAD_QUEUE) != length)
		sched_yield();
}

Test(admission, who_waits_is_served_when_a_call_ends)
{
	struct waiter waiter;
	int held;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	held = holding();
	begin(&waiter, wait_in_line);
	wait_for_line(1);
	cr_expect_eq(atomic_load(&waiter.result), 2);
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 0);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
	expect_totals(0, 0, 0);
}

Test(admission, who_waits_to_connect_is_served_when_a_connection_is_closed)
{
	struct waiter waiter;
	int held;

	start_with("connections=1 queue=1 queue-wait=1h");
	held = holding();
	begin(&waiter, wait_in_line);
	wait_for_line(1);
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 0);
	expect_totals(0, 0, 0);
}

/* A place of a connection can be had, again and again, but none of a call. */
Test(admission, who_finds_only_the_calls_full_wakes_nobody)
{
	struct waiter waiter;
	uint32_t before;
	int held;

	start_with("concurrency=1 connections=9 queue=1 queue-wait=1h rejects=ignore");
	held = holding();
	begin(&waiter, wait_in_line);
	while (!atomic_load(&the_cell(NULL)->released))
		sched_yield();
	before = atomic_load(&the_cell(NULL)->released);
	for (int i = 0; i < 99; i++)
		expect_refused(fresh(SOCK_NONBLOCK));
	cr_expect_eq(atomic_load(&the_cell(NULL)->released), before);
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 0);
	cr_expect_eq(in_flight(BULKHEAD_CONNECTIONS), 1);
}

Test(admission, only_so_many_wait)
{
	struct waiter waiters[2];
	int held[2];

	start_with("concurrency=2 queue=2 queue-wait=1h");
	held[0] = holding();
	held[1] = holding();
	begin(&waiters[0], wait_in_line);
	begin(&waiters[1], wait_in_line);
	wait_for_line(2);
	expect_refused(fresh(0));
	expect_totals(1, 0, 0);
	hook_close(held[0]);
	hook_close(held[1]);
	for (int i = 0; i < 2; i++) {
		pthread_join(waiters[i].thread, NULL);
		cr_expect_eq(atomic_load(&waiters[i].result), 0);
	}
	expect_totals(1, 0, 0);
}

Test(admission, a_circuit_that_opens_meanwhile_refuses_who_waited)
{
	struct breaker breaker;
	struct waiter waiter;
	int held;

	start_with("concurrency=1 queue=1 queue-wait=1h sleep=1h");
	held = holding();
	begin(&waiter, wait_in_line);
	wait_for_line(1);
	breaker = the_breaker();
	control_trip(&breaker, clock_now_ns());
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), -1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
	cr_expect_eq(total(CELL_TOTAL_rejected), 0);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
}

Test(admission, who_waits_when_a_filter_comes_is_refused_and_keeps_it_from_nothing)
{
	struct waiter waiter;

	start_queue();
	begin(&waiter, wait_in_line);
	wait_for_line(1);
	while (atomic_load(&own_calls.calling))
		sched_yield();
	own_calls_forbid();
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), -1);
	expect_totals(1, 1, 0);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
}

/* What would end a wait in the kernel ends this one. */

Test(admission, who_may_only_send_for_so_long_waits_no_longer)
{
	struct timeval time = { .tv_usec = 30000 };
	uint64_t began_ns;
	int fd;

	start_queue();
	fd = fresh(0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	began_ns = clock_now_ns();
	expect_refused(fd);
	cr_expect_geq(clock_now_ns() - began_ns, 30 * MS_NS);
	expect_totals(1, 1, 0);
}

static _Atomic int handled;

static void handle(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

/* And no other handler is there. */
static void handle_signals(int flags)
{
	struct sigaction none = { .sa_handler = SIG_DFL };
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &none, NULL);
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

static void *send_in_line(void *argument)
{
	struct waiter *waiter = argument;
	ssize_t size = hook_send(waiter->fd, "request", 7, 0);

	atomic_store(&waiter->result, size < 0 ? errno : 0);
	return NULL;
}

/* A connection on which there was an answer, while another has the only call. */
static int start_send_queue(int *ret_held)
{
	char data[8];
	int kept;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	kept = holding();
	hook_send(kept, "request", 7, 0);
	hook_recv(kept, data, sizeof(data), 0);
	*ret_held = holding();
	return kept;
}

static void interrupt(struct waiter *waiter, int result)
{
	wait_for_line(1);
	while (atomic_load(&waiter->result) == result) {
		pthread_kill(waiter->thread, SIGUSR1);
		sched_yield();
	}
	pthread_join(waiter->thread, NULL);
}

Test(admission, a_send_that_waits_is_interrupted_and_may_be_made_again)
{
	struct waiter waiter;
	int held;

	waiter.fd = start_send_queue(&held);
	handle_signals(0);
	begin(&waiter, send_in_line);
	interrupt(&waiter, 2);
	cr_expect_eq(atomic_load(&waiter.result), EINTR);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
	expect_totals(0, 0, 0);
	hook_close(held);
	cr_expect_eq(hook_send(waiter.fd, "request", 7, 0), 7);
	expect_totals(0, 0, 0);
}

/* EINTR would say that it goes on by itself. */
Test(admission, a_connect_that_is_interrupted_is_refused)
{
	struct waiter waiter;

	start_queue();
	handle_signals(0);
	begin(&waiter, wait_in_line);
	interrupt(&waiter, 2);
	cr_expect_eq(atomic_load(&waiter.result), -1);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
	expect_totals(1, 1, 0);
}

Test(admission, a_handler_that_lets_calls_go_on_ends_no_wait)
{
	struct waiter waiter;
	int held;

	waiter.fd = start_send_queue(&held);
	handle_signals(SA_RESTART);
	begin(&waiter, send_in_line);
	wait_for_line(1);
	while (atomic_load(&handled) < 99) {
		pthread_kill(waiter.thread, SIGUSR1);
		sched_yield();
	}
	cr_expect_eq(atomic_load(&waiter.result), 2);
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 0);
	expect_totals(0, 0, 0);
}

static sigjmp_buf back;

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

/* Leaves in the middle of its wait, and then makes another call. */
static void *leave_line(void *argument)
{
	struct waiter *waiter = argument;

	waiter->fd = fresh(0);
	if (!sigsetjmp(back, 1))
		connect_to(waiter->fd);
	atomic_store(&waiter->result, 3);
	while (in_flight(BULKHEAD_CALLS))
		sched_yield();
	atomic_store(&waiter->result, connect_to(waiter->fd));
	return NULL;
}

Test(admission, who_leaves_by_longjmp_stands_in_line_until_his_next_call)
{
	struct sigaction action = { .sa_handler = jump };
	struct waiter waiter;
	int held;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	sigaction(SIGUSR1, &action, NULL);
	held = holding();
	begin(&waiter, leave_line);
	/* Not only in line: its thread knows that it is. */
	while (!atomic_load(&the_cell(NULL)->released))
		sched_yield();
	pthread_kill(waiter.thread, SIGUSR1);
	while (atomic_load(&waiter.result) != 3)
		sched_yield();
	hook_close(held);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 0);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 1);
	hook_close(waiter.fd);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
}

static void *leave_line_and_end(void *argument)
{
	if (!sigsetjmp(back, 1))
		wait_in_line(argument);
	return NULL;
}

Test(admission, who_leaves_by_longjmp_stands_in_line_no_longer_than_his_thread_lives)
{
	struct sigaction action = { .sa_handler = jump };
	struct waiter waiter;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	sigaction(SIGUSR1, &action, NULL);
	holding();
	begin(&waiter, leave_line_and_end);
	while (!atomic_load(&the_cell(NULL)->released))
		sched_yield();
	pthread_kill(waiter.thread, SIGUSR1);
	pthread_join(waiter.thread, NULL);
	cr_expect_eq(atomic_load(&waiter.result), 2);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
}

static void *be_cancelled(void *argument)
{
	wait_in_line(argument);
	pthread_testcancel();
	return NULL;
}

Test(admission, a_cancelled_thread_leaves_nothing_but_its_connection)
{
	struct waiter waiter;
	void *end;
	int held;

	start_with("concurrency=1 queue=1 queue-wait=1h");
	held = holding();
	begin(&waiter, be_cancelled);
	wait_for_line(1);
	cr_assert_eq(pthread_cancel(waiter.thread), 0);
	hook_close(held);
	pthread_join(waiter.thread, &end);
	cr_expect_eq(end, PTHREAD_CANCELED);
	cr_expect_eq(in_flight(BULKHEAD_QUEUE), 0);
	hook_close(waiter.fd);
	cr_expect_eq(in_flight(BULKHEAD_CALLS), 0);
}

Test(admission, what_is_admitted_keeps_errno)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd;

	start_with("concurrency=1 connections=1 queue=1");
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = fresh(0);
	errno = EDOM;
	cr_expect_eq(hook_connect(fd, (struct sockaddr *)&peer, sizeof(peer)), 0);
	cr_expect_eq(errno, EDOM);
}
