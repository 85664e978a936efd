/* SPDX-License-Identifier: MIT */
/* Times are compared in one direction only: nothing comes before it is due. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/epoll_set.h"
#include "shim/fd_table.h"
#include "shim/hold.h"
#include "shim/own_call.h"
#include "shim/registration.h"
#include "shim/runtime.h"

#define NS_PER_MS 1000000ull
#define HOLD_NS	  (30 * NS_PER_MS)
#define LONG_NS	  (3600000ull * NS_PER_MS)
#define FDS	  2048
#define DATA(fd)  (0x1234500000000ull + (uint64_t)(fd))

static struct {
	_Atomic uint64_t in_ns, out_ns;
} until[FDS];
static _Atomic uint32_t asked;
static volatile uint64_t *asked_there; /* counts as well; may be NULL */

static struct hold_times ask(int fd, uint32_t events, uint64_t now_ns)
{
	(void)events;
	(void)now_ns;
	asked++;
	if (asked_there)
		++*asked_there;
	return (struct hold_times){ until[fd].in_ns, until[fd].out_ns };
}

/* Ours, for what is tested to look at: libc's own must stay true, or its locks lock nothing, and a
 * program that is not linked by address has no other. */
__attribute__((visibility("default"))) char __libc_single_threaded;

static void start(void)
{
	real_resolve();
	below_start();
	cr_assert(fd_table_start());
	cr_assert(hold_start(ask));
	holds_expect();
	/* The test runner has threads, or had. */
	__libc_single_threaded = true;
}

TestSuite(hold, .init = start, .timeout = 60);

/* ends[0] is a connection, ends[1] its peer. */
struct pair {
	int ends[2];
};

static void connection_at(int fd)
{
	struct connection *stale;

	cr_assert_not_null(fd_table_connect(fd, &stale));
}

static struct pair pair_new(void)
{
	struct pair pair;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.ends), 0);
	connection_at(pair.ends[0]);
	return pair;
}

static void forget(int fd)
{
	struct connection *last = fd_table_set(fd, FD_OTHER);

	if (last)
		fd_table_free(last);
}

static uint64_t hold_in(int fd, uint64_t duration_ns)
{
	uint64_t due_ns = clock_now_ns() + duration_ns;

	until[fd].in_ns = due_ns;
	return due_ns;
}

static void say(const struct pair *pair)
{
	cr_assert_eq(write(pair->ends[1], "x", 1), 1);
}

static void hear(const struct pair *pair)
{
	char byte;

	cr_assert_eq(read(pair->ends[0], &byte, 1), 1);
}

static void fill(int fd)
{
	char data[4096] = { 0 };

	while (write(fd, data, sizeof(data)) > 0)
		;
	cr_assert_eq(errno, EAGAIN);
}

static void drain(int fd)
{
	char data[4096];

	while (read(fd, data, sizeof(data)) > 0)
		;
}

static int control(int set, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = DATA(fd) };

	return real()->epoll_ctl(set, operation, fd, &event);
}

static int set_of(const struct pair *pair, uint32_t events)
{
	int set = epoll_create1(0);

	cr_assert_geq(set, 0);
	cr_assert_eq(control(set, EPOLL_CTL_ADD, pair->ends[0], events), 0);
	return set;
}

/* The bits of the one event about fd; 0: none came in time. */
static uint32_t waited(int set, int fd, int timeout)
{
	struct epoll_event events[4];
	int count = real()->epoll_wait(set, events, 4, timeout);

	cr_assert_leq(count, 1);
	if (count != 1)
		return 0;
	cr_assert_eq(events[0].data.u64, DATA(fd));
	return events[0].events;
}

static uint32_t waited_until(int set, int fd, uint64_t due_ns)
{
	uint32_t events = waited(set, fd, -1);

	cr_assert_geq(clock_now_ns(), due_ns);
	return events;
}

/* Something was said, and is held by the time of return; until when. On a machine so slow that it
 * was due before anybody looked, once more. */
static uint64_t held_until(int set, const struct pair *pair)
{
	for (;;) {
		uint64_t due_ns = hold_in(pair->ends[0], HOLD_NS);

		say(pair);
		if (!waited(set, pair->ends[0], 0))
			return due_ns;
		cr_assert_geq(clock_now_ns(), due_ns);
		hear(pair);
	}
}

/* What is held is so no longer. */
static void let_go(int fd)
{
	until[fd].in_ns = until[fd].out_ns = 0;
	holds_release();
}

static void become_threaded(void)
{
	__libc_single_threaded = false;
}

Test(hold, what_is_not_held_comes_at_once)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);

	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
	cr_assert_not(holds_exist());
}

Test(hold, level_triggered_readiness_comes_when_it_is_due)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited(set, pair.ends[0], 0), EPOLLIN);
	hear(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_not(holds_exist());
}

Test(hold, edge_triggered_readiness_comes_once)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET);
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
}

Test(hold, a_oneshot_comes_once_and_is_armed_again_by_the_program)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLONESHOT);
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 50), 0);
	cr_assert_eq(control(set, EPOLL_CTL_MOD, pair.ends[0], EPOLLIN | EPOLLONESHOT), 0);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
}

Test(hold, a_oneshot_that_has_fired_stays_so)
{
	struct pair pair = pair_new();
	int level = set_of(&pair, EPOLLIN | EPOLLONESHOT);
	int edge = set_of(&pair, EPOLLIN | EPOLLET | EPOLLONESHOT);

	say(&pair);
	cr_assert_eq(waited(level, pair.ends[0], -1), EPOLLIN);
	cr_assert_eq(waited(edge, pair.ends[0], -1), EPOLLIN);
	hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	hold_again(pair.ends[0]);
	cr_assert_eq(waited(level, pair.ends[0], 100), 0);
	cr_assert_eq(waited(edge, pair.ends[0], 0), 0);
}

Test(hold, a_oneshot_comes_once_whichever_half_is_held)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT | EPOLLONESHOT);
	uint32_t first, second;

	fill(pair.ends[0]);
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	drain(pair.ends[1]);
	first = waited(set, pair.ends[0], 100);
	let_go(pair.ends[0]);
	second = waited(set, pair.ends[0], first ? 100 : -1);
	cr_assert_neq(!first, !second);
}

Test(hold, a_oneshot_of_which_a_half_was_told_has_fired)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT | EPOLLONESHOT);

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLOUT);
	let_go(pair.ends[0]);
	cr_assert_eq(waited(set, pair.ends[0], 100), 0);
	cr_assert_eq(control(set, EPOLL_CTL_MOD, pair.ends[0], EPOLLIN | EPOLLONESHOT), 0);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
}

Test(hold, exclusive_readiness_is_held_too)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT | EPOLLEXCLUSIVE | EPOLLET);
	uint64_t due_ns;

	fill(pair.ends[0]);
	cr_assert_neq(waited(set, pair.ends[0], 0), EPOLLIN);
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
}

Test(hold, every_set_is_told)
{
	struct pair pair = pair_new();
	int a = set_of(&pair, EPOLLIN | EPOLLET), b = set_of(&pair, EPOLLIN);
	uint64_t due_ns = held_until(a, &pair);

	cr_assert_eq(waited_until(b, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited_until(a, pair.ends[0], due_ns), EPOLLIN);
}

Test(hold, what_is_registered_when_it_is_ready_already_is_held)
{
	struct pair pair = pair_new();
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);
	int set;

	say(&pair);
	set = set_of(&pair, EPOLLIN | EPOLLET);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
}

Test(hold, what_was_registered_unseen_is_read_from_the_kernel)
{
	struct pair pairs[40];
	struct epoll_event events[40];
	int set = epoll_create1(0);

	for (int i = 0; i < 40; i++) {
		pairs[i] = pair_new();
		events[0].events = EPOLLIN | EPOLLET;
		events[0].data.u64 = UINT64_MAX - (uint64_t)i;
		cr_assert_eq(below()->epoll_ctl(set, EPOLL_CTL_ADD, pairs[i].ends[0], events), 0);
		hold_in(pairs[i].ends[0], LONG_NS);
		say(&pairs[i]);
	}
	cr_assert_eq(real()->epoll_wait(set, events, 40, 0), 0);
	for (int i = 0; i < 40; i++) {
		struct registration *found = registration_find(set, pairs[i].ends[0]);

		cr_assert_not_null(found);
		cr_assert_eq(found->events, EPOLLIN | EPOLLET);
		cr_assert_eq(found->data, UINT64_MAX - (uint64_t)i);
		cr_assert_neq(found->withheld, 0);
	}
}

struct waiter {
	pthread_t thread;
	int set, fd;
	uint32_t events;
	uint64_t ended_ns;
	_Atomic int thread_id;
};

static void *waits(void *argument)
{
	struct waiter *waiter = argument;

	waiter->thread_id = gettid();
	waiter->events = waited(waiter->set, waiter->fd, -1);
	waiter->ended_ns = clock_now_ns();
	return NULL;
}

static bool is_in_kernel(const struct waiter *waiter)
{
	char path[64], text[256] = "";
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", waiter->thread_id);
	file = open(path, O_RDONLY);
	if (file < 0)
		return false;
	cr_assert_geq(read(file, text, sizeof(text) - 1), 0);
	close(file);
	return strstr(text, ") S ");
}

Test(hold, nothing_is_looked_at_before_something_may_be_held)
{
	struct pair pair = pair_new();
	struct pollfd entry = { pair.ends[0], POLLIN, 0 };
	fd_set reads;
	int set;

	withheld_is_recorded = withheld_is_expected = false;
	set = set_of(&pair, EPOLLIN);
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
	cr_assert_eq(real()->poll(&entry, 1, -1), 1);
	FD_ZERO(&reads);
	FD_SET(pair.ends[0], &reads);
	cr_assert_eq(real()->select(pair.ends[0] + 1, &reads, NULL, NULL, NULL), 1);
	cr_assert_eq(asked, 0);
	cr_assert_eq(fd_table_kind(set), FD_OTHER);
}

Test(hold, edges_that_were_spent_before_something_may_be_held_come_again)
{
	struct pair pair = pair_new();
	uint64_t due_ns;
	int sets[2];

	withheld_is_recorded = withheld_is_expected = false;
	sets[0] = set_of(&pair, EPOLLIN | EPOLLET);
	sets[1] = set_of(&pair, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE);
	say(&pair);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(waited(sets[i], pair.ends[0], -1), EPOLLIN);
		cr_assert_eq(waited(sets[i], pair.ends[0], 0), 0);
	}
	/* The program's next read is told to come again. */
	holds_expect();
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	hold_again(pair.ends[0]);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(waited_until(sets[i], pair.ends[0], due_ns), EPOLLIN);
		cr_assert_eq(waited(sets[i], pair.ends[0], 0), 0);
	}
}

Test(hold, a_thread_that_waited_before_something_may_be_held_is_told_of_a_spent_edge)
{
	struct pair pair = pair_new();
	struct waiter waiter = { .fd = pair.ends[0] };
	uint64_t due_ns;

	withheld_is_recorded = withheld_is_expected = false;
	waiter.set = set_of(&pair, EPOLLIN | EPOLLET);
	say(&pair);
	cr_assert_eq(waited(waiter.set, pair.ends[0], -1), EPOLLIN);
	become_threaded();
	cr_assert_eq(pthread_create(&waiter.thread, NULL, waits, &waiter), 0);
	while (!is_in_kernel(&waiter))
		sched_yield();
	holds_expect();
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	hold_again(pair.ends[0]);
	pthread_join(waiter.thread, NULL);
	cr_assert_eq(waiter.events, EPOLLIN);
	cr_assert_geq(waiter.ended_ns, due_ns);
}

/* So that a descriptor more is none: what a set holds cannot be read. */
static struct rlimit use_up_descriptors(int last)
{
	struct rlimit before, limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){ (rlim_t)last + 1, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(last) >= 0)
		;
	return before;
}

Test(hold, what_was_recorded_from_the_start_need_not_be_read)
{
	struct pair pair = pair_new();
	int set = epoll_create1(0);
	uint64_t due_ns;

	withheld_is_expected = false;
	epoll_set_born(set);
	cr_assert_eq(control(set, EPOLL_CTL_ADD, pair.ends[0], EPOLLIN | EPOLLET), 0);
	use_up_descriptors(set);
	holds_expect();
	cr_assert(hold_is_possible());
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
}

Test(hold, nothing_more_is_held_while_a_set_cannot_be_read)
{
	struct pair pair = pair_new(), other = pair_new();
	struct rlimit before;
	uint64_t due_ns;
	int set;

	withheld_is_recorded = withheld_is_expected = false;
	set = set_of(&pair, EPOLLIN);
	before = use_up_descriptors(set);
	holds_expect();
	cr_assert_not(hold_is_possible());
	/* What is registered from now on is known. */
	cr_assert_eq(control(set, EPOLL_CTL_ADD, other.ends[0], EPOLLIN), 0);
	due_ns = hold_in(other.ends[0], HOLD_NS);
	say(&other);
	cr_assert_eq(waited_until(set, other.ends[0], due_ns), EPOLLIN);
	cr_assert_not(hold_is_possible());
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_assert(hold_is_possible());
	hear(&other);
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
}

Test(hold, a_set_that_is_closed_is_not_waited_for)
{
	struct pair pair = pair_new();
	int set;

	withheld_is_recorded = withheld_is_expected = false;
	set = set_of(&pair, EPOLLIN);
	cr_assert_eq(close(set), 0);
	holds_expect();
	cr_assert(hold_is_possible());
}

Test(hold, a_thread_that_waited_before_something_may_be_held_is_told_when_it_is_due)
{
	struct pair pair = pair_new();
	struct waiter waiter = { .fd = pair.ends[0] };
	uint64_t due_ns;

	withheld_is_recorded = withheld_is_expected = false;
	waiter.set = set_of(&pair, EPOLLIN);
	become_threaded();
	cr_assert_eq(pthread_create(&waiter.thread, NULL, waits, &waiter), 0);
	holds_expect();
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	pthread_join(waiter.thread, NULL);
	cr_assert_eq(waiter.events, EPOLLIN);
	cr_assert_geq(waiter.ended_ns, due_ns);
}

Test(hold, a_thread_that_waits_already_is_woken_when_it_is_due)
{
	struct pair pair = pair_new();
	struct waiter waiter = { .set = set_of(&pair, EPOLLIN | EPOLLET), .fd = pair.ends[0] };
	uint64_t due_ns;

	become_threaded();
	cr_assert_eq(pthread_create(&waiter.thread, NULL, waits, &waiter), 0);
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	pthread_join(waiter.thread, NULL);
	cr_assert_eq(waiter.events, EPOLLIN);
	cr_assert_geq(waiter.ended_ns, due_ns);
}

Test(hold, the_timer_thread_gives_it_back_to_who_does_not_look)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET);
	struct epoll_event event;
	uint64_t due_ns;

	become_threaded();
	due_ns = held_until(set, &pair);
	/* Who waits begins to. */
	real()->poll(NULL, 0, 0);
	cr_assert_eq(below()->epoll_wait(set, &event, 1, -1), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
}

Test(hold, the_timer_thread_serves_what_was_taken_out_beside_what_is_told)
{
	struct pair held = pair_new(), told = pair_new();
	int set = set_of(&held, EPOLLIN | EPOLLET);
	struct epoll_event events[2];

	become_threaded();
	cr_assert_eq(control(set, EPOLL_CTL_ADD, told.ends[0], EPOLLIN | EPOLLET), 0);
	for (;;) {
		hold_in(held.ends[0], HOLD_NS);
		say(&held);
		say(&told);
		if (real()->epoll_wait(set, events, 2, -1) == 1 &&
				events[0].data.u64 == DATA(told.ends[0]))
			break;
		/* It was due before anybody looked. */
		drain(held.ends[0]);
		drain(told.ends[0]);
	}
	cr_assert_eq(below()->epoll_wait(set, events, 2, -1), 1);
	cr_assert_eq(events[0].data.u64, DATA(held.ends[0]));
}

Test(hold, a_program_without_threads_stays_so)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	struct stat before, after;

	cr_assert_eq(stat("/proc/self/task", &before), 0);
	held_until(set, &pair);
	cr_assert_eq(stat("/proc/self/task", &after), 0);
	cr_assert_eq(before.st_nlink, after.st_nlink);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
}

Test(hold, a_second_add_of_what_is_held_is_refused)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	errno = 0;
	cr_assert_eq(control(set, EPOLL_CTL_ADD, pair.ends[0], EPOLLIN), -1);
	cr_assert_eq(errno, EEXIST);
	errno = EDOM;
	cr_assert_eq(control(set, EPOLL_CTL_DEL, pair.ends[0], 0), 0);
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(control(set, EPOLL_CTL_DEL, pair.ends[0], 0), -1);
	cr_assert_eq(errno, ENOENT);
	until[pair.ends[0]].in_ns = 0;
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_eq(control(set, EPOLL_CTL_ADD, pair.ends[0], EPOLLIN), 0);
	cr_assert_eq(waited(set, pair.ends[0], 0), EPOLLIN);
}

Test(hold, what_was_changed_while_it_was_held_is_told_as_it_is_now)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 77 };
	uint64_t due_ns = held_until(set, &pair);

	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_MOD, pair.ends[0], &event), 0);
	do {
		cr_assert_eq(real()->epoll_wait(set, &event, 1, -1), 1);
		cr_assert_eq(event.data.u64, 77);
	} while (!(event.events & EPOLLIN));
	cr_assert_geq(clock_now_ns(), due_ns);
}

Test(hold, what_the_kernel_refuses_of_a_held_pair_is_refused)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_eq(control(set, EPOLL_CTL_MOD, pair.ends[0], EPOLLIN | EPOLLEXCLUSIVE), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_MOD, pair.ends[0], NULL), -1);
	cr_assert_eq(errno, EFAULT);
	cr_assert_eq(control(set, 99, pair.ends[0], EPOLLIN), -1);
}

Test(hold, writing_goes_on_while_reading_is_held)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT | EPOLLET);
	uint32_t outs = 1;

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLOUT);
	while (waited(set, pair.ends[0], 50) == EPOLLOUT)
		cr_assert_leq(++outs, 3);
	let_go(pair.ends[0]);
	cr_assert(waited(set, pair.ends[0], -1) & EPOLLIN);
}

Test(hold, room_to_write_that_comes_while_reading_is_held_is_told)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT);

	fill(pair.ends[0]);
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	asked = 0;
	cr_assert_eq(waited(set, pair.ends[0], 100), 0);
	cr_assert_leq(asked, 20);
	drain(pair.ends[1]);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLOUT);
}

Test(hold, a_peer_that_leaves_is_told_of_when_it_is_due)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLRDHUP);
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	close(pair.ends[1]);
	asked = 0;
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	cr_assert_leq(asked, 20);
}

/* Until the peer has acknowledged all that it has room for. */
static void fill_for_good(int fd)
{
	struct tcp_info info = { .tcpi_unacked = 1 };
	socklen_t size = sizeof(info);
	int unsent = 0;

	while (info.tcpi_unacked || !unsent) {
		fill(fd);
		poll(NULL, 0, 1);
		cr_assert_eq(ioctl(fd, SIOCOUTQNSD, &unsent), 0);
		cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
	}
	fill(fd);
}

/* A connection with no room to write and an error that is no end: when something was sent, put into
 * the queue of errors. */
static struct pair pair_with_error(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int wanted = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_TX_ACK |
			SOF_TIMESTAMPING_SOFTWARE;
	struct pair pair = { { socket(AF_INET, SOCK_STREAM, 0), -1 } };
	struct pollfd entry = { .fd = pair.ends[0] };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	cr_assert_eq(connect(pair.ends[0], (struct sockaddr *)&address, size), 0);
	pair.ends[1] = accept(listener, NULL, NULL);
	close(listener);
	connection_at(pair.ends[0]);
	if (setsockopt(pair.ends[0], SOL_SOCKET, SO_TIMESTAMPING, &wanted, sizeof(wanted)))
		cr_skip_test("no times of what is sent here");
	cr_assert_eq(fcntl(pair.ends[0], F_SETFL, O_NONBLOCK), 0);
	fill_for_good(pair.ends[0]);
	cr_assert_eq(poll(&entry, 1, -1), 1);
	cr_assert_eq(entry.revents, POLLERR);
	return pair;
}

Test(hold, an_error_that_is_held_causes_no_loop)
{
	struct pair pair = pair_with_error();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT);

	hold_in(pair.ends[0], LONG_NS);
	asked = 0;
	cr_assert_eq(waited(set, pair.ends[0], 100), 0);
	cr_assert_leq(asked, 20);
}

Test(hold, a_connection_of_which_writing_is_held_is_read_from)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLOUT);
	uint64_t due_ns;

	until[pair.ends[0]].out_ns = clock_now_ns() + LONG_NS;
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
	hear(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	let_go(pair.ends[0]);
	due_ns = clock_now_ns() + HOLD_NS;
	until[pair.ends[0]].out_ns = due_ns;
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLOUT);
}

Test(hold, an_answer_has_room_for_what_is_behind_what_is_held)
{
	struct pair held = pair_new(), other = pair_new();
	int set = set_of(&held, EPOLLIN);
	struct epoll_event event;

	hold_in(held.ends[0], LONG_NS);
	say(&held);
	cr_assert_eq(control(set, EPOLL_CTL_ADD, other.ends[0], EPOLLIN), 0);
	say(&other);
	cr_assert_eq(real()->epoll_wait(set, &event, 1, 0), 1);
	cr_assert_eq(event.data.u64, DATA(other.ends[0]));
}

Test(hold, sockets_with_one_datum_are_told_apart)
{
	struct pair held = pair_new(), other = pair_new();
	int set = epoll_create1(0), ends[2];
	struct epoll_event event = { .events = EPOLLIN };

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_ADD, held.ends[0], &event), 0);
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event), 0);
	hold_in(held.ends[0], LONG_NS);
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_assert_eq(real()->epoll_wait(set, &event, 1, -1), 1);
	event.events = EPOLLIN;
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_DEL, ends[0], &event), 0);
	cr_assert_eq(real()->epoll_ctl(set, EPOLL_CTL_ADD, other.ends[0], &event), 0);
	say(&held);
	cr_assert_eq(real()->epoll_wait(set, &event, 1, 0), 0);
	say(&other);
	cr_assert_eq(real()->epoll_wait(set, &event, 1, -1), 1);
}

Test(hold, a_wait_that_ends_by_its_time_takes_all_of_it)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	struct timespec timeout = { .tv_nsec = 20000000 };
	struct epoll_event event;
	uint64_t began_ns;

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	began_ns = clock_now_ns();
	cr_assert_eq(real()->epoll_wait(set, &event, 1, 20), 0);
	cr_assert_geq(clock_now_ns() - began_ns, 20 * NS_PER_MS);
	began_ns = clock_now_ns();
	cr_assert_eq(real()->epoll_pwait(set, &event, 1, 20, NULL), 0);
	cr_assert_geq(clock_now_ns() - began_ns, 20 * NS_PER_MS);
	began_ns = clock_now_ns();
	if (real()->epoll_pwait2(set, &event, 1, &timeout, NULL) == 0)
		cr_assert_geq(clock_now_ns() - began_ns, 20 * NS_PER_MS);
	else
		cr_assert_eq(errno, ENOSYS);
}

static void on_alarm(int number)
{
	(void)number;
}

/* Again and again: one may come before the wait. */
static void alarm_soon(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval time = { { 0, 20000 }, { 0, 20000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &time, NULL);
}

Test(hold, a_signal_ends_a_wait)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	struct pollfd entry = { .fd = pair.ends[0], .events = POLLIN };
	struct epoll_event event;
	sigset_t alarm, none;

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	sigemptyset(&none);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	alarm_soon();
	cr_assert_eq(real()->epoll_wait(set, &event, 1, -1), -1);
	cr_assert_eq(errno, EINTR);
	cr_assert_eq(real()->poll(&entry, 1, -1), -1);
	cr_assert_eq(errno, EINTR);
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	cr_assert_eq(real()->epoll_pwait(set, &event, 1, -1, &none), -1);
	cr_assert_eq(errno, EINTR);
	cr_assert_eq(real()->ppoll(&entry, 1, NULL, &none), -1);
	cr_assert_eq(errno, EINTR);
	cr_assert_eq(real()->epoll_wait(set, &event, 1, 50), 0);
}

Test(hold, what_was_closed_while_it_was_held_is_not_given_back)
{
	struct pair pair = pair_new(), next;
	int set = set_of(&pair, EPOLLIN), fd = pair.ends[0];
	struct epoll_event event = { .events = EPOLLIN };

	held_until(set, &pair);
	forget(fd);
	close(fd);
	next = pair_new();
	cr_assert_eq(next.ends[0], fd);
	say(&next);
	cr_assert_eq(waited(set, fd, 100), 0);
	cr_assert_not(holds_exist());
	cr_assert_eq(below()->epoll_ctl(set, EPOLL_CTL_DEL, fd, &event), -1);
}

Test(hold, a_number_that_is_used_again_can_be_registered_again)
{
	struct pair pair = pair_new(), next;
	int set = set_of(&pair, EPOLLIN), fd = pair.ends[0];

	hold_in(fd, LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, fd, 0), 0);
	forget(fd);
	close(fd);
	next = pair_new();
	cr_assert_eq(next.ends[0], fd);
	until[fd].in_ns = 0;
	cr_assert_eq(control(set, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	say(&next);
	cr_assert_eq(waited(set, fd, -1), EPOLLIN);
}

Test(hold, a_set_that_was_closed_is_another_by_the_same_number)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN), fd = pair.ends[0];

	hold_in(fd, LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, fd, 0), 0);
	forget(set);
	close(set);
	cr_assert_eq(epoll_create1(0), set);
	until[fd].in_ns = 0;
	cr_assert_eq(control(set, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	cr_assert_eq(waited(set, fd, -1), EPOLLIN);
}

Test(hold, a_set_has_several_numbers)
{
	struct pair pair = pair_new();
	int set = epoll_create1(0), copy = dup(set);
	uint64_t due_ns;

	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_eq(control(copy, EPOLL_CTL_ADD, pair.ends[0], EPOLLIN | EPOLLET), 0);
	due_ns = held_until(set, &pair);
	cr_assert_eq(control(copy, EPOLL_CTL_MOD, pair.ends[0], EPOLLIN | EPOLLET), 0);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(control(copy, EPOLL_CTL_DEL, pair.ends[0], 0), 0);
}

Test(hold, a_socket_in_more_sets_than_there_is_room_for_makes_no_wait_longer)
{
	struct pair pair = pair_new();
	int sets[64];

	for (int i = 0; i < 64; i++)
		sets[i] = set_of(&pair, EPOLLIN);
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	for (int i = 0; i < 64; i++) {
		uint32_t events = waited(sets[i], pair.ends[0], 0);

		cr_expect(i >= 8 || events == 0, "%d is known", i);
	}
}

Test(hold, what_is_held_is_told_by_another_descriptor_when_one_is_closed)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN), copy = dup(pair.ends[0]);

	fd_table_copy(pair.ends[0], copy);
	held_until(set, &pair);
	hold_in(pair.ends[0], LONG_NS);
	holds_release_copy(pair.ends[0]);
	forget(pair.ends[0]);
	close(pair.ends[0]);
	cr_assert_eq(waited(set, pair.ends[0], 10000), EPOLLIN);
}

Test(hold, a_set_inside_another_is_ready_when_it_is_due)
{
	struct pair pair = pair_new();
	int inner = set_of(&pair, EPOLLIN | EPOLLET), outer = epoll_create1(0);
	struct pollfd entry = { .fd = outer, .events = POLLIN };
	uint64_t due_ns;

	cr_assert_eq(control(outer, EPOLL_CTL_ADD, inner, EPOLLIN), 0);
	due_ns = held_until(inner, &pair);
	cr_assert_eq(real()->poll(&entry, 1, -1), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
	cr_assert_eq(waited(inner, pair.ends[0], -1), EPOLLIN);
}

Test(hold, a_child_leaves_what_is_held_to_its_parent)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET), status;
	uint64_t due_ns = held_until(set, &pair);
	pid_t child;

	child = fork();
	if (child == 0) {
		hold_forked();
		_exit(holds_exist());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
}

Test(hold, what_is_released_is_in_its_set)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET);
	struct epoll_event event;

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	holds_release();
	cr_assert_not(holds_exist());
	cr_assert_eq(below()->epoll_wait(set, &event, 1, 0), 1);
}

Test(hold, an_edge_that_was_spent_comes_again)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET);
	int alone = set_of(&pair, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE);
	uint64_t due_ns;

	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
	cr_assert_eq(waited(alone, pair.ends[0], -1), EPOLLIN);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	hold_again(pair.ends[0]);
	cr_assert_eq(waited_until(set, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited_until(alone, pair.ends[0], due_ns), EPOLLIN);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
}

Test(hold, nothing_is_held_where_nobody_could_give_it_back)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	become_threaded();
	runtime.config.timer = TIMER_OFF;
	cr_assert_not(hold_is_possible());
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
	runtime.config.timer = TIMER_AUTO;
	cr_assert(hold_is_possible());
	own_calls_forbid();
	cr_assert_not(hold_is_possible());
	cr_assert_eq(waited(set, pair.ends[0], -1), EPOLLIN);
}

/* Of poll, ppoll and their fortified twins. */
static int poll_by(int which, struct pollfd *entries, nfds_t count, int timeout)
{
	struct timespec time = { timeout / 1000, timeout % 1000 * 1000000L };
	const struct timespec *end = timeout < 0 ? NULL : &time;
	size_t room = count * sizeof(*entries);

	switch (which) {
	case 0:
		return real()->poll(entries, count, timeout);
	case 1:
		return real()->ppoll(entries, count, end, NULL);
	case 2:
		return real()->__poll_chk(entries, count, timeout, room);
	default:
		return real()->__ppoll_chk(entries, count, end, NULL, room);
	}
}

Test(hold, poll_tells_when_it_is_due)
{
	struct pair pair = pair_new();

	say(&pair);
	for (int which = 0; which < 4; which++) {
		struct pollfd entries[] = { { -1, POLLIN, -1 }, { pair.ends[0], POLLIN, -1 },
			{ pair.ends[1], POLLIN, -1 } };
		uint64_t began_ns = clock_now_ns(), due_ns;

		hold_in(pair.ends[0], LONG_NS);
		asked = 0;
		cr_assert_eq(poll_by(which, entries, 3, 20), 0);
		cr_assert_leq(asked, 20);
		cr_assert_geq(clock_now_ns() - began_ns, 20 * NS_PER_MS);
		due_ns = hold_in(pair.ends[0], HOLD_NS);
		cr_assert_eq(poll_by(which, entries, 3, -1), 1);
		cr_assert_geq(clock_now_ns(), due_ns);
		cr_assert_eq(entries[0].fd, -1);
		cr_assert_eq(entries[0].revents, 0);
		cr_assert_eq(entries[1].fd, pair.ends[0]);
		cr_assert_eq(entries[1].events, POLLIN);
		cr_assert_eq(entries[1].revents, POLLIN);
		cr_assert_eq(entries[2].revents, 0);
	}
}

Test(hold, poll_tells_of_all_else_at_once)
{
	struct pair pair = pair_new(), other = pair_new();
	struct pollfd entries[] = { { pair.ends[0], POLLIN | POLLOUT, 0 },
		{ other.ends[0], POLLIN, 0 }, { 1999, POLLIN, 0 } };

	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	say(&other);
	cr_assert_eq(real()->poll(entries, 3, -1), 3);
	cr_assert_eq(entries[0].revents, POLLOUT);
	cr_assert_eq(entries[1].revents, POLLIN);
	cr_assert_eq(entries[2].revents, POLLNVAL);
}

Test(hold, poll_does_not_go_round_for_errors_that_are_held)
{
	struct pair pair = pair_with_error();
	struct pollfd entry = { pair.ends[0], POLLIN | POLLOUT, 0 };

	hold_in(pair.ends[0], LONG_NS);
	asked = 0;
	cr_assert_eq(real()->poll(&entry, 1, 100), 0);
	cr_assert_leq(asked, 20);
}

Test(hold, poll_of_many_descriptors_is_no_different)
{
	struct pair pair = pair_new();
	struct pollfd entries[500];
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	say(&pair);
	for (int i = 0; i < 500; i++)
		entries[i] = (struct pollfd){ i < 499 ? -1 : pair.ends[0], POLLIN, -1 };
	cr_assert_eq(real()->poll(entries, 500, -1), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
	cr_assert_eq(entries[0].revents, 0);
	cr_assert_eq(entries[499].revents, POLLIN);
}

static sigjmp_buf jump;

static void leave(int signal)
{
	(void)signal;
	siglongjmp(jump, 1);
}

Test(hold, a_poll_that_is_left_takes_no_memory_with_it)
{
	struct sigaction action = { .sa_handler = leave };
	struct itimerval soon = { .it_value = { 0, 1000 } };
	struct pair pair = pair_new();
	struct pollfd entries[100];
	uint64_t due_ns;

	cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
	for (int i = 0; i < 100; i++)
		entries[i] = (struct pollfd){ i ? -1 : pair.ends[0], POLLIN, 0 };
	for (volatile int i = 0; i < 100; i++) {
		if (sigsetjmp(jump, 1))
			continue;
		cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
		real()->poll(entries, 100, -1);
		cr_assert_fail("nothing was to be told");
	}
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	cr_assert_eq(real()->poll(entries, 100, -1), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
}

static int select_by(int which, int count, fd_set *reads, fd_set *writes, struct timeval *timeout)
{
	struct timespec time = { 0 };

	if (which == 0)
		return real()->select(count, reads, writes, NULL, timeout);
	if (timeout)
		time = (struct timespec){ timeout->tv_sec, timeout->tv_usec * 1000 };
	return real()->pselect(count, reads, writes, NULL, timeout ? &time : NULL, NULL);
}

Test(hold, select_tells_when_it_is_due)
{
	struct pair pair = pair_new();
	int fd = pair.ends[0];

	say(&pair);
	for (int which = 0; which < 2; which++) {
		struct timeval timeout = { 0, 20000 };
		uint64_t began_ns = clock_now_ns(), due_ns;
		fd_set reads, writes;

		FD_ZERO(&reads);
		FD_ZERO(&writes);
		FD_SET(fd, &reads);
		hold_in(fd, LONG_NS);
		cr_assert_eq(select_by(which, fd + 1, &reads, &writes, &timeout), 0);
		cr_assert_geq(clock_now_ns() - began_ns, 20 * NS_PER_MS);
		cr_assert_not(FD_ISSET(fd, &reads));
		cr_assert(which || (!timeout.tv_sec && !timeout.tv_usec));
		FD_SET(fd, &reads);
		FD_SET(fd, &writes);
		cr_assert_eq(select_by(which, fd + 1, &reads, &writes, NULL), 1);
		cr_assert_not(FD_ISSET(fd, &reads));
		cr_assert(FD_ISSET(fd, &writes));
		FD_CLR(fd, &writes);
		FD_SET(fd, &reads);
		due_ns = hold_in(fd, HOLD_NS);
		timeout = (struct timeval){ 1000, 0 };
		cr_assert_eq(select_by(which, fd + 1, &reads, &writes, &timeout), 1);
		cr_assert_geq(clock_now_ns(), due_ns);
		cr_assert(FD_ISSET(fd, &reads));
		cr_assert(which || timeout.tv_sec <= 999);
	}
}

Test(hold, select_that_fails_leaves_the_sets_as_they_were)
{
	struct pair pair = pair_new();
	int fd = pair.ends[0], closed = dup(fd);
	fd_set reads;

	hold_in(fd, LONG_NS);
	close(closed);
	FD_ZERO(&reads);
	FD_SET(fd, &reads);
	FD_SET(closed, &reads);
	cr_assert_eq(real()->select(closed + 1, &reads, NULL, NULL, NULL), -1);
	cr_assert_eq(errno, EBADF);
	cr_assert(FD_ISSET(fd, &reads));
	cr_assert(FD_ISSET(closed, &reads));
}

Test(hold, select_past_the_size_of_a_set_is_no_different)
{
	struct pair pair = pair_new();
	struct {
		fd_set parts[2];
	} reads = { 0 };
	uint64_t *words = (uint64_t *)(void *)&reads, due_ns;
	int fd = fcntl(pair.ends[0], F_DUPFD, 1100);

	if (fd < 0)
		cr_skip_test("no descriptor above 1100 is allowed here");
	connection_at(fd);
	due_ns = hold_in(fd, HOLD_NS);
	say(&pair);
	words[fd / 64] |= 1ull << fd % 64;
	cr_assert_eq(real()->select(fd + 1, reads.parts, NULL, NULL, NULL), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
	cr_assert_eq(words[fd / 64], 1ull << fd % 64);
}

/* As many as a process may have, of a set for the first 1024: the kernel knows how many it has. */
#define TABLE_SIZE (1 << 20)

Test(hold, select_leaves_alone_what_stands_behind_a_set)
{
	struct pair pair = pair_new();
	struct {
		fd_set reads;
		uint64_t behind[TABLE_SIZE / 64];
	} *memory = calloc(1, sizeof(*memory));

	for (int which = 0; which < 2; which++) {
		uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

		say(&pair);
		FD_ZERO(&memory->reads);
		FD_SET(pair.ends[0], &memory->reads);
		memset(memory->behind, 0xff, sizeof(memory->behind));
		memory->behind[0] = 0;
		asked = 0;
		asked_there = &memory->behind[0];
		cr_assert_eq(select_by(which, TABLE_SIZE, &memory->reads, NULL, NULL), 1);
		cr_assert_geq(clock_now_ns(), due_ns);
		cr_assert(FD_ISSET(pair.ends[0], &memory->reads));
		cr_assert_gt(asked, 0);
		cr_assert_eq(memory->behind[0], asked);
		cr_assert_eq(memory->behind[1], UINT64_MAX);
	}
}

Test(hold, select_needs_no_memory_behind_a_set)
{
	struct pair pair = pair_new();
	char *page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	fd_set *reads = (fd_set *)(void *)(page + 4096 - sizeof(fd_set));
	uint64_t due_ns = hold_in(pair.ends[0], HOLD_NS);

	cr_assert_eq(mprotect(page + 4096, 4096, PROT_NONE), 0);
	say(&pair);
	FD_SET(pair.ends[0], reads);
	cr_assert_eq(real()->select(TABLE_SIZE, reads, NULL, NULL, NULL), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
	cr_assert(FD_ISSET(pair.ends[0], reads));
}

/* What is not held may have a higher number than all that is. */
Test(hold, select_looks_as_far_as_the_kernel_does)
{
	struct pair pair = pair_new();
	uint64_t *reads = calloc(TABLE_SIZE / 64, sizeof(*reads));
	int high = fcntl(pair.ends[1], F_DUPFD, 3000);

	if (high < 0)
		cr_skip_test("no descriptor above 3000 is allowed here");
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(write(pair.ends[0], "x", 1), 1);
	reads[pair.ends[0] / 64] |= 1ull << pair.ends[0] % 64;
	reads[high / 64] |= 1ull << high % 64;
	cr_assert_eq(real()->select(TABLE_SIZE, (fd_set *)(void *)reads, NULL, NULL, NULL), 1);
	cr_assert_eq(reads[high / 64], 1ull << high % 64);
	cr_assert_eq(reads[pair.ends[0] / 64], 0);
}

/* A child's table is as large as it needs to be. */
Test(hold, select_in_a_child_looks_no_further_than_the_child_has)
{
	struct pair pair = pair_new();
	uint64_t *reads = calloc(TABLE_SIZE / 64, sizeof(*reads));
	int high = fcntl(pair.ends[1], F_DUPFD, 3000), status;
	struct timeval at_once = { 0 };
	pid_t child;

	if (high < 0)
		cr_skip_test("no descriptor above 3000 is allowed here");
	hold_in(pair.ends[0], LONG_NS);
	reads[pair.ends[0] / 64] |= 1ull << pair.ends[0] % 64;
	cr_assert_eq(real()->select(TABLE_SIZE, (fd_set *)(void *)reads, NULL, NULL, &at_once), 0);
	close(high);
	child = fork();
	if (child == 0) {
		hold_forked();
		reads[pair.ends[0] / 64] |= 1ull << pair.ends[0] % 64;
		reads[high / 64] = UINT64_MAX;
		_exit(real()->select(TABLE_SIZE, (fd_set *)(void *)reads, NULL, NULL, &at_once) ||
				reads[high / 64] != UINT64_MAX);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
}

Test(hold, without_descriptors_poll_and_select_sleep)
{
	struct timeval timeout = { 0, 10000 };
	uint64_t began_ns = clock_now_ns();

	cr_assert_eq(real()->select(0, NULL, NULL, NULL, &timeout), 0);
	cr_assert_geq(clock_now_ns() - began_ns, 10 * NS_PER_MS);
	began_ns = clock_now_ns();
	cr_assert_eq(real()->poll(NULL, 0, 10), 0);
	cr_assert_geq(clock_now_ns() - began_ns, 10 * NS_PER_MS);
}

Test(hold, what_the_kernel_refuses_is_refused)
{
	struct pair pair = pair_new();
	struct timespec wrong = { 0, 2000000000 };
	volatile uintptr_t low = 8;
	struct pollfd entry = { pair.ends[0], POLLIN, 0 };
	struct epoll_event event;
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(pair.ends[0], &reads);
	cr_assert_eq(real()->ppoll(&entry, 1, &wrong, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(real()->pselect(pair.ends[0] + 1, &reads, NULL, NULL, &wrong, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(real()->select(-1, &reads, NULL, NULL, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(real()->poll((struct pollfd *)low, 1, 0), -1);
	cr_assert_eq(errno, EFAULT);
	cr_assert_eq(real()->epoll_wait(pair.ends[0], &event, 1, 0), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(real()->epoll_wait(-1, &event, 1, 0), -1);
	cr_assert_eq(errno, EBADF);
	cr_assert_not_null(fd_table_find(pair.ends[0]));
}

/* The raw one, of another process that has the set, too. */
static int told_elsewhere(int set, int timeout)
{
	struct epoll_event event;

	return epoll_wait(set, &event, 1, timeout);
}

Test(hold, what_processes_share_goes_back_when_one_of_them_closes_it)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN | EPOLLET);

	holds_share();
	hold_in(pair.ends[0], LONG_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_eq(told_elsewhere(set, 0), 0);
	holds_release_copy(pair.ends[0]);
	cr_assert_eq(told_elsewhere(set, 0), 1);
}

Test(hold, what_processes_share_goes_back_whether_one_waits_or_not)
{
	struct pair pair = pair_new();
	int set = set_of(&pair, EPOLLIN);
	uint64_t due_ns;

	holds_share();
	due_ns = hold_in(pair.ends[0], HOLD_NS);
	say(&pair);
	cr_assert_eq(waited(set, pair.ends[0], 0), 0);
	cr_assert_eq(told_elsewhere(set, -1), 1);
	cr_assert_geq(clock_now_ns(), due_ns);
}
