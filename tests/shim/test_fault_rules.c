/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "core/clock.h"
#include "core/fault_text.h"
#include "shim/own_call.h"

#define HOUR_NS 3600000000000ull

TestSuite(fault_rules, .timeout = 60);

static void begin(const char *rules)
{
	faults_open(SOCK_STREAM);
	faults_start(rules);
}

/* 0 or errno. */
static int attempt(void)
{
	int fd = socket_new(0), error = connect_fd(fd) ? errno : 0;

	hook_close(fd);
	return error;
}

/* So many other runs have a rule. */
static void crowd(uint64_t first, uint64_t count)
{
	struct fault fault;
	char error[128];

	cr_assert(fault_parse("OTHER", "redis refuse", strlen("redis refuse"), &fault, error,
			sizeof(error)));
	for (uint64_t run = first; run < first + count; run++)
		cr_assert_not_null(fault_table_claim(&runtime.segment->faults, &fault, "", run,
				clock_now_ns() + run));
}

static void nothing_is_counted_for_others(void)
{
	struct fault_view view;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		cr_assert(fault_table_read(&runtime.segment->faults, i, 0, &view));
		cr_expect_str_eq(view.name, "OTHER");
		cr_expect_eq(view.connections + view.counts.seen + view.counts.matched +
						view.counts.injected,
				0);
	}
}

Test(fault_rules, numbers_go_on_when_the_record_is_given_away)
{
	begin("fault A = 127.0.0.1:PORT refuse calls=2..9 times=2\n");
	cr_expect_eq(attempt(), 0);
	cr_expect_eq(attempt(), ECONNREFUSED);
	crowd(1, FAULT_TABLE_SIZE);
	nothing_is_counted_for_others();
	cr_expect_eq(attempt(), ECONNREFUSED);
	cr_expect_eq(attempt(), 0, "times=2");
	nothing_is_counted_for_others();
}

Test(fault_rules, a_rule_added_by_hand_is_over_when_its_record_is_given_away)
{
	struct fault_table *table;

	begin("break B = 127.0.0.1:PORT\n");
	table = &runtime.segment->faults;
	fault_added("X", "127.0.0.1:PORT refuse");
	cr_expect_eq(attempt(), ECONNREFUSED);
	table->records[0].ends_ns = 1;
	crowd(1, FAULT_TABLE_SIZE);
	cr_expect_eq(attempt(), 0);
	nothing_is_counted_for_others();
}

Test(fault_rules, a_rule_that_is_over_sees_nothing_more)
{
	struct fault_record *record;

	begin("break B = 127.0.0.1:PORT\n");
	fault_added("X", "127.0.0.1:PORT refuse");
	record = &runtime.segment->faults.records[0];
	cr_expect_eq(attempt(), ECONNREFUSED);
	uint64_t seen = record->seen;
	cr_expect_gt(seen, 0);
	record->ends_ns = 1;
	cr_expect_eq(attempt(), 0);
	cr_expect(record->seen == seen && record->matched == 1);
}

/* One that comes and goes, as chaos by the clock does, takes no further place each time. */
Test(fault_rules, a_rule_that_was_cleared_and_is_added_again_has_its_place)
{
	struct fault_table *table;

	begin("break B = 127.0.0.1:PORT\n");
	table = &runtime.segment->faults;
	for (int i = 0; i < 3; i++) {
		fault_added("X", "127.0.0.1:PORT refuse");
		cr_expect_eq(attempt(), ECONNREFUSED);
		cr_expect_eq(fault_rules_count(), 1);
		cr_assert_eq(fault_table_clear(table, "X", clock_now_ns()), 1);
		cr_expect_eq(attempt(), 0);
	}
}

Test(fault_rules, the_end_of_all_faults_is_that_of_added_ones_too)
{
	begin("break B = 127.0.0.1:PORT\n");
	runtime.config.expire_ns = 30000000000u;
	fault_added("X", "127.0.0.1:PORT refuse");
	cr_expect_eq(attempt(), ECONNREFUSED);
	runtime.segment->faults.records[0].began_ns = 1;
	cr_expect_eq(attempt(), 0);
}

#define IDLE(name) "fault " name " = 127.0.0.1:PORT reset calls=9\n"

Test(fault_rules, rules_beyond_those_that_one_connection_can_have_are_counted)
{
	begin(IDLE("A") IDLE("B") IDLE("C") IDLE("D") IDLE("E") IDLE("F") IDLE("G") IDLE("H")
			"fault I = 127.0.0.1:PORT refuse\n");
	cr_expect_eq(attempt(), 0);
	cr_expect_eq(suppressed(7, FAULT_IMPOSSIBLE), 0);
	cr_expect_eq(suppressed(8, FAULT_IMPOSSIBLE), 1);
	cr_expect_eq(record_of(8)->matched, 1);
}

Test(fault_rules, connections_within_their_number_are_told_so)
{
	begin("fault A = 127.0.0.1:PORT maxconn=5\n");
	cr_expect_eq(attempt(), 0);
	cr_expect_eq(suppressed(0, FAULT_BY_NUMBER), 1);
	cr_expect_eq(suppressed(0, FAULT_IMPOSSIBLE), 0);
}

Test(fault_rules, reading_them_again_leaves_signals_and_errno_alone)
{
	struct fault fault;
	char text[64], error[128];
	sigset_t before, after;

	begin("break B = 127.0.0.1:PORT\n");
	with_port("127.0.0.1:PORT refuse", text, sizeof(text));
	cr_assert(fault_parse("X", text, strlen(text), &fault, error, sizeof(error)));
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	cr_assert_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	cr_assert(fault_table_add(&runtime.segment->faults, &fault, text,
			clock_now_ns() + HOUR_NS, clock_now_ns()));
	errno = 77;
	inject_look();
	cr_expect_eq(errno, 77);
	cr_expect_eq(fault_rules_count(), 1);
	cr_assert_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	for (int number = 1; number < 32; number++)
		cr_expect_eq(sigismember(&after, number), number == SIGUSR2, "%d", number);
}

static void change_rules(void)
{
	atomic_fetch_add(&runtime.segment->faults.generation, 1);
}

/* A rule that is added now is seen. */
static void expect_heed(uint64_t now_ns)
{
	uint32_t count = fault_rules_count();
	struct fault fault;
	char text[64], error[128];

	with_port("127.0.0.1:PORT refuse", text, sizeof(text));
	cr_assert(fault_parse("LATER", text, strlen(text), &fault, error, sizeof(error)));
	cr_assert(fault_table_add(&runtime.segment->faults, &fault, text, now_ns + HOUR_NS,
			now_ns));
	fault_rules_refresh(now_ns);
	cr_expect_eq(fault_rules_count(), count + 1);
	cr_expect_eq(fault_table_clear(&runtime.segment->faults, NULL, now_ns + 1), 1);
	fault_rules_refresh(now_ns + 1);
	cr_expect(fault_rule_is_over(fault_rule_at(count), now_ns + 1));
}

static sigjmp_buf way_out;
static _Atomic bool is_leaving, is_told_to_end;
static _Atomic unsigned int lefts;

static void leave(int number)
{
	if (!atomic_exchange(&is_leaving, false))
		return;
	(void)number;
	lefts++;
	siglongjmp(way_out, 1);
}

static void *disturb(void *thread)
{
	while (!is_told_to_end)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	return NULL;
}

/* Reads the rules until a handler has left it so often. */
static void leave_readings(unsigned int times)
{
	struct sigaction action = { .sa_handler = leave };
	pthread_t self = pthread_self(), other;

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	cr_assert_eq(pthread_create(&other, NULL, disturb, &self), 0);
	while (lefts < times) {
		if (sigsetjmp(way_out, 1) != 0)
			continue;
		is_leaving = true;
		while (is_leaving) {
			change_rules();
			fault_rules_refresh(clock_now_ns());
		}
	}
	is_told_to_end = true;
	cr_assert_eq(pthread_join(other, NULL), 0);
}

Test(fault_rules, a_handler_that_leaves_leaves_nothing_half_read)
{
	begin("break B = 127.0.0.1:PORT\n");
	leave_readings(200);
	cr_expect_eq(fault_rules.reading, 0);
	expect_heed(clock_now_ns());
}

/* Of a reading that nobody ends, nobody can tell before so long. */
Test(fault_rules, under_a_filter_what_a_handler_has_left_is_read_later)
{
	uint64_t now_ns;

	begin("break B = 127.0.0.1:PORT\n");
	own_calls_forbid();
	leave_readings(200);
	now_ns = clock_now_ns();
	if (fault_rules.reading) {
		change_rules();
		fault_rules_refresh(now_ns);
		cr_expect(fault_rules_have_changed(), "somebody may be at it still");
	}
	expect_heed(now_ns + 11000000000ull);
	cr_expect_eq(fault_rules.reading, 0);
}

Test(fault_rules, what_cannot_have_been_left_is_waited_for)
{
	uint64_t now_ns = clock_now_ns();

	begin("break B = 127.0.0.1:PORT\n");
	fault_rules.reading = now_ns & ~1ull;
	change_rules();
	fault_rules_refresh(now_ns + HOUR_NS);
	cr_expect(fault_rules_have_changed());
	fault_rules.reading = now_ns | 1;
	fault_rules_refresh(now_ns + 9000000000ull);
	cr_expect(fault_rules_have_changed());
	fault_rules_refresh(now_ns + 11000000000ull);
	cr_expect_not(fault_rules_have_changed());
}

static void *read_without_end(void *unused)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		change_rules();
		fault_rules_refresh(clock_now_ns());
		lefts++;
	}
	return unused;
}

Test(fault_rules, a_thread_that_is_cancelled_leaves_nothing_half_read)
{
	begin("break B = 127.0.0.1:PORT\n");
	for (int i = 0; i < 100; i++) {
		unsigned int before = lefts;
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, read_without_end, NULL), 0);
		while (lefts == before)
			sched_yield();
		cr_assert_eq(pthread_cancel(thread), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(fault_rules.reading, 0);
	}
	expect_heed(clock_now_ns());
}
