/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/control.h"
#include "core/clock.h"
#include "shim/call.h"
#include "shim/gate.h"
#include "shim/gate_connect.h"
#include "shim/gate_lifetime.h"
#include "shim/gate_option.h"
#include "shim/real.h"
#include "shim/runtime.h"

#define FD 5
#define RULES "break PAY = 127.0.0.1:9 volume=2 sleep=1h\n"

static int shutdowns, shutdown_how, questions;
static int protocol_there = IPPROTO_TCP; /* what the kernel has at the descriptor; 0: no socket */

static int fake_shutdown(int fd, int how)
{
	(void)fd;
	shutdowns++;
	shutdown_how = how;
	errno = ENOTCONN;
	return -1;
}

static int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	(void)fd, (void)size;
	questions++;
	cr_assert(level == SOL_SOCKET && name == SO_PROTOCOL);
	if (!protocol_there) {
		errno = ENOTSOCK;
		return -1;
	}
	*(int *)value = protocol_there;
	return 0;
}

static void start_with(const char *rules)
{
	real()->shutdown = fake_shutdown;
	real()->getsockopt = fake_getsockopt;
	runtime.pid = (uint32_t)getpid();
	config_load_text(&runtime.config, "test", rules, strlen(rules));
	cr_assert_eq(runtime.config.problem_count, 0, "%s", runtime.config.problems[0].text);
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cr_assert(fd_table_start());
	atomic_store(&runtime.is_active, true);
}

static void start(void)
{
	start_with(RULES);
}

TestSuite(gate, .init = start);

static bool ask(struct gate *gate, int fd, const char *address, int port)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, address, &peer.sin_addr);
	return gate_connect(gate, fd, (struct sockaddr *)&peer, sizeof(peer));
}

static bool connect_fd(int fd)
{
	struct gate gate;

	return ask(&gate, fd, "127.0.0.1", 9) && !gate_connected(&gate, 0);
}

static char data[64] = "GET / HTTP/1.1\r\n";
static const struct iovec vector = { data, 16 };
static const struct bytes request = { &vector, 1 };

static ssize_t send_on(int fd, ssize_t result)
{
	struct connection *connection = gate_find(fd);
	struct gate gate;

	if (!connection)
		return result;
	if (!gate_send(&gate, connection, fd, request, 0))
		return -2;
	return gate_sent(&gate, result);
}

static ssize_t receive_on(int fd, ssize_t result)
{
	struct connection *connection = gate_find(fd);
	struct gate gate;

	if (!connection)
		return result;
	if (!gate_receive(&gate, connection, fd, request, 0))
		return -2;
	return gate_received(&gate, result);
}

static struct cell *the_cell(void)
{
	struct address address;
	struct endpoint endpoint = { .address = &address, .port = 9 };

	cr_assert(address_parse("127.0.0.1", &address));
	return runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			NULL);
}

static uint64_t total(enum cell_total which)
{
	return atomic_load(&the_cell()->totals[which]);
}

static void trip(void)
{
	struct breaker breaker = runtime_breaker(&runtime.config.rules[0], the_cell());

	control_trip(&breaker, clock_now_ns());
}

Test(gate, a_call_ends_with_the_first_byte_of_its_answer)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect(connect_fd(FD));
	cr_expect_eq(send_on(FD, 16), 16);
	cr_expect_eq(total(CELL_TOTAL_success), 0);
	cr_expect_eq(receive_on(FD, 1), 1);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
	cr_expect_eq(receive_on(FD, 10), 10);
	gate_close(FD);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
	cr_expect_eq(total(CELL_TOTAL_unused), 0);
}

Test(gate, an_open_circuit_refuses_a_connect_at_once)
{
	struct gate gate;

	trip();
	gate_born(FD, AF_INET, SOCK_STREAM);
	errno = 0;
	cr_expect_not(ask(&gate, FD, "127.0.0.1", 9));
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_null(gate_find(FD));
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
}

Test(gate, what_no_rule_matches_is_let_through)
{
	struct gate gate;

	trip();
	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect(ask(&gate, FD, "127.0.0.1", 10));
	cr_expect_null(gate.connection);
	cr_expect(ask(&gate, FD, "127.0.0.2", 9));
	cr_expect_null(gate.connection);
	cr_expect_null(gate_find(FD));
}

static int clock_reads;

static int count_clock(clockid_t clock, struct timespec *ret)
{
	clock_reads++;
	return clock_gettime(clock, ret);
}

Test(gate, what_no_rule_matches_needs_no_clock)
{
	struct gate gate;

	gate_born(FD, AF_INET, SOCK_STREAM);
	clock_use(count_clock);
	cr_expect(ask(&gate, FD, "127.0.0.1", 10));
	cr_expect_eq(gate_connected(&gate, 0), 0);
	gate_close(FD);
	cr_expect_eq(clock_reads, 0);
}

Test(gate, a_datagram_socket_is_never_refused)
{
	struct gate gate;

	trip();
	gate_born(FD, AF_INET, SOCK_DGRAM);
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
}

/* The kernel says EAFNOSUPPORT, whatever the circuit. */
Test(gate, an_address_of_the_other_family_is_not_refused)
{
	struct gate gate;

	trip();
	gate_born(FD, AF_INET6, SOCK_STREAM);
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	cr_expect_null(gate.connection);
	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect_not(ask(&gate, FD, "127.0.0.1", 9));
}

Test(gate, a_disconnected_socket_is_what_it_was)
{
	gate_born(FD, AF_INET6, SOCK_STREAM);
	gate_receive_timeout(FD, 1000000);
	cr_assert_not_null(gate_find(FD));
	cr_expect_eq(gate_find(FD)->kind, FD_STREAM6);
}

Test(gate, a_socket_that_was_never_seen_being_born_is_let_through_unasked)
{
	struct gate gate;

	trip();
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	cr_expect_null(gate.connection);
	cr_expect_eq(questions, 0);
}

/* An answered connection whose circuit is open now, and which may have been cut. */
static void be_refused(bool is_cut)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	receive_on(FD, 16);
	trip();
	if (is_cut)
		cr_assert_eq(send_on(FD, 16), -2);
}

/* Closed where no preload sees it, and the number given to a file or a pipe. */
Test(gate, a_refusal_never_reaches_the_next_file)
{
	be_refused(false);
	protocol_there = 0;
	errno = EDOM;
	cr_expect_eq(send_on(FD, 16), 16);
	cr_expect_eq(errno, EDOM);
	cr_expect_eq(shutdowns, 0);
	cr_expect_null(gate_find(FD));
}

Test(gate, a_cut_never_reaches_the_next_file)
{
	be_refused(true);
	protocol_there = IPPROTO_UDP;
	cr_expect_eq(send_on(FD, 16), 16);
	cr_expect_null(gate_find(FD));
}

Test(gate, a_cut_keeps_no_data_of_the_next_file_back)
{
	be_refused(true);
	protocol_there = 0;
	cr_expect_eq(receive_on(FD, 16), 16);
	cr_expect_null(gate_find(FD));
}

Test(gate, under_a_filter_a_cut_connection_is_not_asked_about)
{
	be_refused(true);
	questions = 0;
	runtime_filter_begins();
	cr_expect_eq(send_on(FD, 16), -2);
	cr_expect_eq(questions, 0);
}

Test(gate, a_copy_that_fails_leaves_its_target_alone)
{
	struct connection *connection;
	uint32_t taken;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	connection = gate_find(FD);
	send_on(FD, 16);
	taken = gate_copy_begins(1000, FD);
	cr_expect_null(gate_find(FD), "in between it may be any file");
	gate_not_copied(FD, taken);
	cr_expect_eq(gate_find(FD), connection);
	cr_expect_eq(receive_on(FD, 16), 16);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

Test(gate, a_copy_ends_the_call_of_its_target)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_copied(1000, FD, gate_copy_begins(1000, FD));
	cr_expect_null(gate_find(FD));
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

Test(gate, a_target_born_again_during_a_failed_copy_is_not_taken_back)
{
	uint32_t taken;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	taken = gate_copy_begins(1000, FD);
	gate_born(FD, AF_INET, SOCK_STREAM);
	gate_not_copied(FD, taken);
	cr_expect_null(gate_find(FD));
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

Test(gate, a_copy_onto_itself_takes_nothing_away)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	cr_expect_eq(gate_copy_begins(FD, FD), FD_OTHER);
	cr_expect_not_null(gate_find(FD));
}

Test(gate, a_kept_alive_connection_is_cut_when_the_circuit_opens)
{
	int error = 0;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	receive_on(FD, 16);
	trip();
	errno = 0;
	cr_expect_eq(send_on(FD, 16), -2);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(shutdowns, 1);
	cr_expect_eq(shutdown_how, SHUT_RD);
	errno = 0;
	cr_expect_eq(receive_on(FD, 16), -2);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(send_on(FD, 16), -2);
	gate_so_error(FD, &error);
	cr_expect_eq(error, ECONNRESET);
	cr_expect_eq(shutdowns, 1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 1);
	gate_close(FD);
	cr_expect_null(gate_find(FD));
}

Test(gate, under_a_filter_a_cut_makes_no_call_of_its_own)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	receive_on(FD, 16);
	runtime_filter_begins();
	trip();
	errno = 0;
	cr_expect_eq(send_on(FD, 16), -2);
	cr_expect_eq(errno, ECONNRESET);
	cr_expect_eq(receive_on(FD, 16), -2);
	cr_expect_eq(shutdowns, 0);
}

/* Closed by another thread; the pool gives its connection to the next descriptor. */
Test(gate, what_comes_back_to_a_closed_descriptor_is_no_news_of_its_successor)
{
	struct gate receiving, sending, connecting;

	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_assert(ask(&connecting, FD, "127.0.0.1", 9));
	gate_connected(&connecting, 0);
	cr_assert(gate_send(&sending, gate_find(FD), FD, request, 0));
	cr_assert(gate_receive(&receiving, gate_find(FD), FD, request, 0));
	gate_close(FD);
	gate_born(FD + 1, AF_INET, SOCK_STREAM);
	connect_fd(FD + 1);
	cr_assert_eq(gate_find(FD + 1), receiving.connection);
	send_on(FD + 1, 16);
	errno = ECONNREFUSED;
	cr_expect_eq(gate_connected(&connecting, -1), -1);
	errno = EPIPE;
	cr_expect_eq(gate_sent(&sending, -1), -1);
	cr_expect_eq(gate_received(&receiving, 1), 1);
	cr_expect_eq(total(CELL_TOTAL_success), 0);
	cr_expect_eq(total(CELL_TOTAL_failure), 0);
	cr_expect_eq(receive_on(FD + 1, 1), 1);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

Test(gate, bytes_in_the_middle_of_an_exchange_are_never_refused)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	trip();
	cr_expect_eq(send_on(FD, 16), 16);
	cr_expect_eq(receive_on(FD, 16), 16);
	cr_expect_eq(shutdowns, 0);
}

Test(gate, a_reader_that_a_cut_wakes_sees_a_reset)
{
	struct gate gate;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	receive_on(FD, 16);
	cr_expect(gate_receive(&gate, gate_find(FD), FD, request, 0));
	trip();
	cr_expect_eq(send_on(FD, 16), -2);
	errno = 0;
	cr_expect_eq(gate_received(&gate, 0), -1);
	cr_expect_eq(errno, ECONNRESET);
}

Test(gate, observe_refuses_nothing_and_counts)
{
	runtime.observe = true;
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	receive_on(FD, 16);
	trip();
	cr_expect_eq(send_on(FD, 16), 16);
	cr_expect_eq(receive_on(FD, 16), 16);
	gate_born(FD + 1, AF_INET, SOCK_STREAM);
	cr_expect(connect_fd(FD + 1));
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 2);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
	cr_expect_eq(shutdowns, 0);
}

Test(gate, failed_connects_trip_the_circuit)
{
	struct gate gate;

	for (int round = 0; round < 2; round++) {
		gate_born(FD, AF_INET, SOCK_STREAM);
		cr_expect(ask(&gate, FD, "127.0.0.1", 9));
		errno = ECONNREFUSED;
		cr_expect_eq(gate_connected(&gate, -1), -1);
		cr_expect_eq(errno, ECONNREFUSED);
		gate_close(FD);
	}
	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect_not(ask(&gate, FD, "127.0.0.1", 9));
	cr_expect_eq(total(CELL_TOTAL_failure), 2);
	cr_expect_eq(total(CELL_TOTAL_trips), 1);
}

Test(gate, a_second_connect_belongs_to_the_pending_attempt)
{
	struct gate gate;

	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	errno = EINPROGRESS;
	gate_connected(&gate, -1);
	trip();
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	errno = ECONNREFUSED;
	gate_connected(&gate, -1);
	cr_expect_eq(total(CELL_TOTAL_failure), 1);
	cr_expect_eq(total(CELL_TOTAL_short_circuited), 0);
}

Test(gate, a_shutdown_while_connecting_is_the_programs_own_giving_up)
{
	struct gate connecting, again;

	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect(ask(&connecting, FD, "127.0.0.1", 9));
	gate_shut(FD, SHUT_RDWR);
	errno = ECONNRESET;
	cr_expect_eq(gate_connected(&connecting, -1), -1);
	cr_expect_eq(total(CELL_TOTAL_failure), 0);
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
	trip();
	cr_expect_not(ask(&again, FD, "127.0.0.1", 9));
}

Test(gate, success_leaves_errno_alone)
{
	struct gate gate;
	int error = 0;

	gate_born(FD, AF_INET, SOCK_STREAM);
	errno = EDOM;
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	gate_connected(&gate, 0);
	gate_so_error(FD, &error);
	send_on(FD, 16);
	receive_on(FD, 16);
	gate_copied(FD, FD + 1, FD_OTHER);
	gate_shut(FD, SHUT_WR);
	gate_close(FD);
	gate_close(FD + 1);
	cr_expect_eq(errno, EDOM);
}

Test(gate, a_copy_keeps_the_call_open)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_copied(FD, FD + 1, FD_OTHER);
	gate_close(FD);
	cr_expect_eq(total(CELL_TOTAL_cancelled), 0);
	cr_expect_eq(receive_on(FD + 1, 16), 16);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
}

Test(gate, close_range_ends_calls_like_close)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_close_range(3, ~0u);
	cr_expect_null(gate_find(FD));
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
}

Test(gate, a_number_born_again_forgets_the_old_connection)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_born_other(FD);
	cr_expect_null(gate_find(FD));
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

Test(gate, fork_cancels_open_calls_once_and_keeps_idle_connections)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_born(FD + 1, AF_INET, SOCK_STREAM);
	connect_fd(FD + 1);
	send_on(FD + 1, 16);
	receive_on(FD + 1, 16);
	gate_fork_parent();
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
	receive_on(FD, 16);
	cr_expect_eq(total(CELL_TOTAL_success), 1);
	send_on(FD + 1, 16);
	receive_on(FD + 1, 16);
	cr_expect_eq(total(CELL_TOTAL_success), 2);
}

/* Another connect to the same target, by whoever does not wait. */
static bool is_place_free(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct gate gate;
	bool is_free;

	cr_assert_geq(fd, 0);
	gate_born(fd, AF_INET, SOCK_STREAM);
	is_free = ask(&gate, fd, "127.0.0.1", 9);
	gate_close(fd);
	close(fd);
	return is_free;
}

static void start_limited_call(void)
{
	start_with("break PAY = 127.0.0.1:9 concurrency=1 volume=1000\n");
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	cr_assert_not(is_place_free());
	gate_fork_parent();
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
}

Test(gate_fork, a_call_that_goes_on_keeps_its_place_until_its_answer)
{
	start_limited_call();
	cr_expect_not(is_place_free());
	errno = EAGAIN;
	receive_on(FD, -1);
	cr_expect_not(is_place_free(), "no answer yet");
	receive_on(FD, 1);
	cr_expect(is_place_free());
	send_on(FD, 16);
	gate_close(FD);
	cr_expect_eq(total(CELL_TOTAL_success), 0, "it is not judged any more");
}

Test(gate_fork, a_call_that_goes_on_keeps_its_place_until_no_answer_can_come)
{
	start_limited_call();
	receive_on(FD, 0);
	cr_expect(is_place_free());
}

Test(gate_fork, a_call_that_goes_on_keeps_its_place_until_its_connection_ends)
{
	start_limited_call();
	gate_close(FD);
	cr_expect(is_place_free());
	cr_expect_eq(total(CELL_TOTAL_cancelled), 2, "this call, and the one that found a place");
}

Test(gate, a_forked_child_reports_nothing_of_its_parent)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_fork_child();
	gate_exit();
	cr_expect_eq(total(CELL_TOTAL_cancelled), 0);
	cr_expect_eq(total(CELL_TOTAL_timeout), 0);
}

/* A reader has ended one call, and before it reports that, a writer begins the next. */
Test(gate, a_call_that_begins_before_the_last_is_reported_is_reported_too)
{
	struct connection *connection;
	struct exchange_step step;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	connection = gate_find(FD);
	step = exchange_received(&connection->exchange, call_settings(connection), request, 1, 0,
			false, 0, clock_now_ns());
	cr_assert_eq(step.ended, OUTCOME_SUCCESS);
	send_on(FD, 16);
	call_settle(connection, step, clock_now_ns());
	receive_on(FD, 1);
	cr_expect_eq(total(CELL_TOTAL_success), 2);
}

static struct cell *cell_of(const char *host, const char *text, uint16_t port)
{
	struct address address;
	struct endpoint endpoint = { .host = host, .address = &address, .port = port };

	cr_assert(address_parse(text, &address));
	return runtime_cell(&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(),
			NULL);
}

Test(gate_rules, per_address_is_a_circuit_for_each_host_address_and_port)
{
	struct cell *cell;

	start_with("break PAY = any\n");
	cell = cell_of("pay.internal", "10.0.0.1", 9);
	cr_expect_eq(cell->key.port, 9);
	cr_expect_eq(cell_of("pay.internal", "10.0.0.1", 9), cell);
	cr_expect_neq(cell_of("pay.internal", "10.0.0.1", 10), cell);
	cr_expect_neq(cell_of("pay.internal", "10.0.0.2", 9), cell);
	cr_expect_neq(cell_of("shop.internal", "10.0.0.1", 9), cell);
	cr_expect_neq(cell_of(NULL, "10.0.0.1", 9), cell);
}

Test(gate_rules, per_host_is_a_circuit_for_all_addresses_and_ports_of_a_host)
{
	struct cell *named, *numeric;

	start_with("break PAY = any per=host\n");
	named = cell_of("pay.internal", "10.0.0.1", 9);
	numeric = cell_of(NULL, "10.0.0.1", 9);
	cr_expect_eq(named->key.port, 0);
	cr_expect_eq(cell_of("pay.internal", "10.0.0.2", 10), named);
	cr_expect_neq(cell_of("shop.internal", "10.0.0.1", 9), named);
	cr_expect_neq(numeric, named);
	cr_expect_eq(cell_of(NULL, "10.0.0.1", 10), numeric);
	cr_expect_neq(cell_of(NULL, "10.0.0.2", 9), numeric);
}

Test(gate_rules, per_rule_is_one_circuit)
{
	struct cell *cell;

	start_with("break PAY = any per=rule\n");
	cell = cell_of("pay.internal", "10.0.0.1", 9);
	cr_expect_eq(cell_of(NULL, "10.0.0.2", 10), cell);
}

/* In a program of its own that ends with its first call: was it let through? */
static bool one_call_passes(void)
{
	struct gate gate;
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (!ask(&gate, FD, "127.0.0.1", 9))
			_exit(0);
		errno = ECONNREFUSED;
		gate_connected(&gate, -1);
		_exit(1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

Test(gate_rules, short_lived_programs_do_not_all_draw_the_same)
{
	struct breaker breaker;
	int passed = 0;

	start_with("break PAY = 127.0.0.1:9 volume=1 probes=20%\n");
	breaker = runtime_breaker(&runtime.config.rules[0], the_cell());
	control_half(&breaker, clock_now_ns());
	gate_born(FD, AF_INET, SOCK_STREAM);
	runtime.seed = 1;
	for (int program = 0; program < 100; program++)
		passed += one_call_passes();
	cr_expect_geq(passed, 10);
	cr_expect_leq(passed, 30);
}

Test(gate, exit_settles_open_calls_once)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	gate_exit();
	gate_exit();
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
}

Test(gate, a_receive_timeout_set_before_connect_counts)
{
	gate_born(FD, AF_INET, SOCK_STREAM);
	gate_receive_timeout(FD, 1000000);
	connect_fd(FD);
	cr_expect(exchange_has(&gate_find(FD)->exchange, EXCHANGE_RECEIVE_TIMEOUT));
}

Test(gate, nothing_is_judged_before_start)
{
	struct gate gate;

	trip();
	atomic_store(&runtime.is_active, false);
	cr_expect(ask(&gate, FD, "127.0.0.1", 9));
	cr_expect_null(gate.connection);
}

Test(gate, bad_addresses_go_to_the_kernel)
{
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct gate gate;

	trip();
	gate_born(FD, AF_INET, SOCK_STREAM);
	cr_expect(gate_connect(&gate, FD, NULL, sizeof(peer)));
	cr_expect(gate_connect(&gate, FD, (struct sockaddr *)1, sizeof(peer)));
	cr_expect(gate_connect(&gate, FD, (struct sockaddr *)-1, sizeof(peer)));
	for (socklen_t length = 0; length < sizeof(peer); length++)
		cr_expect(gate_connect(&gate, FD, (struct sockaddr *)&peer, length));
	cr_expect_not(gate_connect(&gate, FD, (struct sockaddr *)&peer, sizeof(peer)));
	peer.sin_family = AF_UNIX;
	cr_expect(gate_connect(&gate, FD, (struct sockaddr *)&peer, sizeof(peer)));
}

Test(gate, a_disconnect_ends_the_call)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct gate gate;

	gate_born(FD, AF_INET, SOCK_STREAM);
	connect_fd(FD);
	send_on(FD, 16);
	cr_expect(gate_connect(&gate, FD, &nobody, sizeof(nobody)));
	gate_connected(&gate, 0);
	cr_expect_null(gate_find(FD));
	cr_expect_eq(fd_table_kind(FD), FD_STREAM);
	cr_expect_eq(total(CELL_TOTAL_cancelled), 1);
}
