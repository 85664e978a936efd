/* SPDX-License-Identifier: MIT */
#include "shim/holder.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/own_call.h"
#include "shim/runtime.h"

#define HASH	  0x5eedull
#define SECOND_NS 1000000000ull

static struct cell *cell;

static void start(void)
{
	struct cell_key key;

	runtime.pid = (uint32_t)getpid();
	runtime.segment = segment_open_private();
	cr_assert_not_null(runtime.segment);
	cell_key_make(&key, CELL_CONNECTION, "PAY", "pay", NULL, 9, &settings_default.window);
	cell = segment_cell(runtime.segment, &key, HASH, 1);
	cr_assert_not_null(cell);
}

TestSuite(holder, .init = start, .timeout = 60);

static struct bulkhead the_bulkhead(void)
{
	return bulkhead_of(holder_ready(), HASH, BULKHEAD_CALLS);
}

static bool take(place_t *ret_place)
{
	struct bulkhead bulkhead = the_bulkhead();

	return bulkhead_take(&bulkhead, holder_ready(), 1, ret_place) == BULKHEAD_TAKEN;
}

static uint32_t in_flight(void)
{
	struct bulkhead bulkhead = the_bulkhead();

	return bulkhead_in_flight(&bulkhead);
}

static seat_t own_seat(void)
{
	return atomic_load(&holder_ready()->seat);
}

Test(holder, a_process_has_one_seat_for_all)
{
	seat_t seat = own_seat();

	cr_assert_neq(seat, 0);
	cr_expect(seat_is_taken(&runtime.segment->seats, seat));
	cr_expect_eq(own_seat(), seat);
}

static void *ask_for_seat(void *nothing)
{
	(void)nothing;
	return (void *)(uintptr_t)own_seat();
}

Test(holder, threads_that_come_at_once_have_one_seat_that_is_taken)
{
	pthread_t threads[8];

	for (size_t i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, ask_for_seat, NULL), 0);
	for (size_t i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	cr_expect(seat_is_taken(&runtime.segment->seats, own_seat()));
}

#define THREADS 4
#define ROUNDS	200

static pthread_barrier_t together;
static place_t places_of[THREADS];

static void *take_first_places(void *place)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct bulkhead bulkhead;

		pthread_barrier_wait(&together);
		bulkhead = the_bulkhead();
		bulkhead_take(&bulkhead, holder_ready(), THREADS, place);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
	}
	return NULL;
}

static bool this_one_is_alive(struct seat_owner owner)
{
	return owner.pid == runtime.pid;
}

Test(holder, what_threads_take_at_once_is_all_held)
{
	struct bulkhead bulkhead = the_bulkhead();
	pthread_t threads[THREADS];
	uint32_t lost = 0;

	pthread_barrier_init(&together, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, take_first_places, &places_of[i]),
				0);
	for (int round = 0; round < ROUNDS; round++) {
		/* As in a child, which has no seat yet. */
		holder_leave();
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		lost += bulkhead_reclaim(&bulkhead, this_one_is_alive);
		for (size_t i = 0; i < THREADS; i++)
			holder_give(cell, places_of[i]);
		pthread_barrier_wait(&together);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(lost, 0);
}

Test(holder, what_was_held_before_an_exec_is_void)
{
	struct bulkhead bulkhead = the_bulkhead();
	place_t place;

	cr_assert(take(&place));
	holder_forked();
	holder_start();
	cr_expect_eq(bulkhead_reclaim(&bulkhead, this_one_is_alive), 1);
	cr_expect(take(&place));
}

/* All seats are its parent's, who lives. */
static void take_all_seats(seat_t *ret_last)
{
	struct seat_owner other = { .pid = (uint32_t)getppid() };

	for (int i = 0; i < SEAT_COUNT; i++) {
		*ret_last = seat_take(&runtime.segment->seats, other, NULL);
		cr_assert_neq(*ret_last, 0);
	}
}

Test(holder, a_process_without_a_seat_is_counted_and_limits_nothing)
{
	struct bulkhead bulkhead;
	seat_t last;
	place_t place;

	take_all_seats(&last);
	bulkhead = the_bulkhead();
	cr_expect_eq(bulkhead_take(&bulkhead, holder_ready(), 1, &place), BULKHEAD_NO_ROOM);
	cr_expect_eq(own_seat(), 0);
	cr_expect_eq(atomic_load(&runtime.segment->header.unseated), 1);
}

Test(holder, whoever_found_no_seat_looks_again_but_not_with_every_call)
{
	uint64_t began_ns;
	seat_t last, early;

	do {
		atomic_store(&runtime.segment->header.unseated, 0);
		memset(&runtime.segment->seats, 0, sizeof(runtime.segment->seats));
		take_all_seats(&last);
		holder_forked();
		began_ns = clock_coarse_ns();
		cr_assert_eq(own_seat(), 0);
		seat_leave(&runtime.segment->seats, last);
		early = own_seat();
	} while (clock_coarse_ns() - began_ns >= SECOND_NS / 5);
	cr_expect_eq(early, 0);
	while (!own_seat())
		sched_yield();
	cr_expect_geq(clock_coarse_ns() - began_ns, SECOND_NS / 5);
	cr_expect_eq(atomic_load(&runtime.segment->header.unseated), 1);
}

Test(holder, a_place_that_is_given_back_can_be_taken_again)
{
	place_t place, other;

	cr_assert(take(&place));
	cr_expect_not(take(&other));
	holder_give(cell, place);
	cr_expect_eq(in_flight(), 0);
	cr_expect(take(&other));
	holder_give(cell, place);
	cr_expect_eq(in_flight(), 1, "the first one is void");
}

Test(holder, nothing_is_no_place)
{
	uint32_t before = atomic_load(&cell->released);

	holder_give(cell, 0);
	cr_expect_eq(atomic_load(&cell->released), before);
}

Test(holder, where_nobody_waits_nothing_is_told)
{
	place_t place;

	cr_assert(take(&place));
	holder_give(cell, place);
	cr_expect_eq(atomic_load(&cell->released), 0);
}

Test(holder, a_place_given_back_since_is_no_wait)
{
	uint32_t since;
	place_t place;

	cr_assert(take(&place));
	since = holder_wait_begins(cell);
	holder_give(cell, place);
	cr_expect_neq(atomic_load(&cell->released), since);
	cr_expect_eq(holder_wait(cell, since, clock_now_ns() + 3600 * SECOND_NS), HOLDER_WAITED);
}

/* Of those who wait. */
static _Atomic pid_t about_to_wait;

/* As holder_wait() does, but for ever: it has to be woken. */
static void *wait_for_place(void *since)
{
	atomic_store(&about_to_wait, gettid());
	while (atomic_load(&cell->released) == (uint32_t)(uintptr_t)since)
		syscall(SYS_futex, &cell->released, FUTEX_WAIT, (uint32_t)(uintptr_t)since, NULL,
				NULL, 0);
	return NULL;
}

static char state_of(pid_t id)
{
	char path[64], text[256] = "";
	const char *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", id);
	file = fopen(path, "r");
	cr_assert(file && fgets(text, sizeof(text), file));
	fclose(file);
	at = strrchr(text, ')');
	return at ? at[2] : '\0';
}

static bool is_asleep(pid_t id)
{
	return state_of(id) == 'S';
}

Test(holder, a_place_given_back_wakes_all_who_wait)
{
	pthread_t threads[4];
	uint32_t since;
	place_t place;
	pid_t id;

	cr_assert(take(&place));
	since = holder_wait_begins(cell);
	for (size_t i = 0; i < 4; i++) {
		atomic_store(&about_to_wait, 0);
		pthread_create(&threads[i], NULL, wait_for_place, (void *)(uintptr_t)since);
		while (!(id = atomic_load(&about_to_wait)) || !is_asleep(id))
			sched_yield();
	}
	holder_give(cell, place);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

Test(holder, another_process_is_woken_too)
{
	uint32_t since = holder_wait_begins(cell);
	place_t place;
	int status;
	pid_t child;

	cr_assert(take(&place));
	child = fork();
	if (child == 0) {
		wait_for_place((void *)(uintptr_t)since);
		_exit(7);
	}
	/* It sleeps nowhere else. */
	while (!is_asleep(child))
		sched_yield();
	holder_give(cell, place);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(WEXITSTATUS(status), 7);
}

Test(holder, a_wait_ends_with_its_time)
{
	uint64_t until_ns = clock_now_ns() + 20000000;

	while (clock_now_ns() < until_ns)
		cr_assert_eq(holder_wait(cell, holder_wait_begins(cell), until_ns), HOLDER_WAITED);
	cr_expect_eq(holder_wait(cell, holder_wait_begins(cell), until_ns), HOLDER_WAITED,
			"it is over");
}

/* The dead give nothing back: somebody has to look. */
Test(holder, a_wait_is_no_longer_than_until_the_next_look_for_the_dead)
{
	cr_expect_eq(holder_wait(cell, holder_wait_begins(cell), clock_now_ns() + 3600 * SECOND_NS),
			HOLDER_WAITED);
}

Test(holder, under_a_filter_nobody_waits_or_is_woken)
{
	uint32_t since;
	place_t place;

	cr_assert(take(&place));
	since = holder_wait_begins(cell);
	own_calls_forbid();
	cr_expect_eq(holder_wait(cell, since, clock_now_ns() + 3600 * SECOND_NS),
			HOLDER_FORBIDDEN);
	holder_give(cell, place);
	cr_expect_eq(in_flight(), 0, "but places come back");
	cr_expect_eq(atomic_load(&own_calls.calling), 0);
}

Test(holder, under_a_filter_no_seat_is_taken_and_nothing_limited)
{
	struct bulkhead bulkhead;
	place_t place;

	own_calls_forbid();
	cr_expect_eq(own_seat(), 0);
	bulkhead = the_bulkhead();
	cr_expect_eq(bulkhead_take(&bulkhead, holder_ready(), 1, &place), BULKHEAD_NO_ROOM);
}

/* A process that holds the only place. */
static pid_t child_holds(void)
{
	place_t place;
	pid_t child = fork();

	if (child == 0) {
		holder_forked();
		runtime.pid = (uint32_t)getpid();
		if (!take(&place))
			_exit(1);
		for (;;)
			pause();
	}
	while (in_flight() == 0)
		sched_yield();
	return child;
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

Test(holder, places_of_the_dead_come_back_and_those_of_the_living_do_not)
{
	struct bulkhead bulkhead = the_bulkhead();
	pid_t child = child_holds();
	uint64_t now_ns = SECOND_NS;

	cr_expect_not(holder_reclaim(&bulkhead, now_ns));
	cr_expect_eq(in_flight(), 1);
	end(child);
	cr_expect(holder_reclaim(&bulkhead, now_ns + SECOND_NS));
	cr_expect_eq(in_flight(), 0);
	cr_expect_not(holder_reclaim(&bulkhead, now_ns + 2 * SECOND_NS), "nothing more");
}

Test(holder, a_process_that_nobody_has_reaped_is_dead)
{
	struct bulkhead bulkhead = the_bulkhead();
	pid_t child = child_holds();
	siginfo_t info;

	kill(child, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	cr_expect(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 0);
	waitpid(child, NULL, 0);
}

static void *stay(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* The kernel shows its first thread as it shows the dead. */
Test(holder, a_process_whose_main_thread_has_ended_is_alive)
{
	struct bulkhead bulkhead = the_bulkhead();
	pthread_t thread;
	place_t place;
	pid_t child = fork();

	if (child == 0) {
		holder_forked();
		runtime.pid = (uint32_t)getpid();
		if (!take(&place) || pthread_create(&thread, NULL, stay, NULL))
			_exit(1);
		syscall(SYS_exit, 0);
	}
	while (state_of(child) != 'Z')
		sched_yield();
	cr_assert_eq(waitpid(child, NULL, WNOHANG), 0);
	cr_expect_not(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 1);
	end(child);
}

Test(holder, the_dead_are_looked_for_five_times_a_second)
{
	struct bulkhead bulkhead = the_bulkhead();
	pid_t child = child_holds();
	uint64_t now_ns = SECOND_NS;

	cr_expect_not(holder_reclaim(&bulkhead, now_ns));
	end(child);
	cr_expect_not(holder_reclaim(&bulkhead, now_ns + SECOND_NS / 5 - 1));
	cr_expect(holder_reclaim(&bulkhead, now_ns + SECOND_NS / 5));
}

Test(holder, a_full_bulkhead_keeps_nobody_from_looking_at_another)
{
	struct bulkhead dead = the_bulkhead();
	struct bulkhead busy = bulkhead_of(holder_ready(), HASH, BULKHEAD_CONNECTIONS);
	place_t place;

	end(child_holds());
	cr_assert_eq(bulkhead_take(&busy, holder_ready(), 1, &place), BULKHEAD_TAKEN);
	cr_expect_not(holder_reclaim(&busy, SECOND_NS));
	cr_expect(holder_reclaim(&dead, SECOND_NS));
	cr_expect_eq(in_flight(), 0);
}

Test(holder, where_nothing_was_ever_held_nobody_is_looked_for)
{
	struct bulkhead none = bulkhead_of(holder_ready(), HASH, BULKHEAD_FALLBACK);

	cr_expect_not(holder_reclaim(&none, SECOND_NS));
}

Test(holder, under_a_filter_the_dead_are_not_looked_for)
{
	struct bulkhead bulkhead = the_bulkhead();

	end(child_holds());
	own_calls_forbid();
	cr_expect_not(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 1);
}

/* Its number was given to another process. */
Test(holder, a_process_that_began_later_is_another)
{
	struct seat_owner earlier = {.pid = (uint32_t)getppid(), .start = 1};
	struct bulkhead bulkhead = the_bulkhead();
	struct holder other = {&runtime.segment->places, &runtime.segment->seats, 0, 0};
	place_t place;

	atomic_store(&other.seat, seat_take(&runtime.segment->seats, earlier, NULL));
	cr_assert_eq(bulkhead_take(&bulkhead, &other, 1, &place), BULKHEAD_TAKEN);
	cr_expect(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 0);
}

Test(holder, whose_start_is_not_known_is_alive_while_its_number_is)
{
	struct seat_owner unknown = {.pid = (uint32_t)getppid()};
	struct bulkhead bulkhead = the_bulkhead();
	struct holder other = {&runtime.segment->places, &runtime.segment->seats, 0, 0};
	place_t place;

	atomic_store(&other.seat, seat_take(&runtime.segment->seats, unknown, NULL));
	cr_assert_eq(bulkhead_take(&bulkhead, &other, 1, &place), BULKHEAD_TAKEN);
	cr_expect_not(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 1);
}

Test(holder, a_forked_child_has_a_seat_of_its_own_and_its_parent_keeps_its_places)
{
	seat_t seat = own_seat();
	place_t place, none;
	int status;
	pid_t child;

	cr_assert(take(&place));
	child = fork();
	if (child == 0) {
		holder_forked();
		runtime.pid = (uint32_t)getpid();
		if (own_seat() == seat || own_seat() == 0)
			_exit(1);
		_exit(take(&none) ? 2 : 7);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(WEXITSTATUS(status), 7);
	cr_expect_eq(in_flight(), 1);
	cr_expect(seat_is_taken(&runtime.segment->seats, seat));
}

Test(holder, what_a_process_holds_when_it_ends_is_void)
{
	struct bulkhead bulkhead = the_bulkhead();
	seat_t seat = own_seat();
	place_t place;

	cr_assert(take(&place));
	holder_leave();
	holder_leave();
	cr_expect_not(seat_is_taken(&runtime.segment->seats, seat));
	cr_expect(holder_reclaim(&bulkhead, SECOND_NS));
	cr_expect_eq(in_flight(), 0);
}

Test(holder, errno_is_kept)
{
	struct bulkhead bulkhead;
	place_t place;

	errno = EDOM;
	bulkhead = the_bulkhead();
	cr_assert(take(&place));
	holder_reclaim(&bulkhead, SECOND_NS);
	holder_wait(cell, holder_wait_begins(cell), clock_now_ns() + 1000);
	holder_give(cell, place);
	cr_expect_eq(errno, EDOM);
}
