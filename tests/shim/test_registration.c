/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/epoll_set.h"
#include "shim/fd_table.h"
#include "shim/registration.h"
#include "shim/thread.h"

static void start(void)
{
	cr_assert(fd_table_start());
	cr_assert(registrations_start());
}

TestSuite(registration, .init = start, .timeout = 60);

static struct registration *record(int set, int fd, uint64_t data)
{
	uint64_t signals = registrations_lock(fd);
	struct registration *registration = registration_claim(set, fd);

	if (registration)
		registration_fill(registration, EPOLLIN, data);
	registrations_unlock(fd, signals);
	return registration;
}

static uint32_t candidates(int set, uint64_t data, bool *ret_is_certain)
{
	int fds[CANDIDATES_MAX];

	return registration_candidates(set, data, fds, ret_is_certain);
}

Test(registration, is_found_by_its_pair_and_by_its_data)
{
	int fds[CANDIDATES_MAX];
	bool is_certain;
	struct registration *made;

	fd_table_set(7, FD_STREAM);
	made = record(3, 7, 70);
	cr_assert_not_null(made);
	cr_assert_eq(registration_find(3, 7), made);
	cr_assert_eq(registration_set(made), 3);
	cr_assert_eq(registration_fd(made), 7);
	cr_assert_eq(registration_candidates(3, 70, fds, &is_certain), 1);
	cr_assert_eq(fds[0], 7);
	cr_assert(is_certain);
	cr_assert_null(registration_find(4, 7));
	cr_assert_null(registration_find(3, 8));
	cr_assert_eq(candidates(3, 71, &is_certain), 0);
	cr_assert_eq(candidates(4, 70, &is_certain), 0);
}

Test(registration, has_one_place_whatever_is_said_of_it)
{
	bool is_certain;

	fd_table_set(7, FD_STREAM);
	cr_assert_eq(record(3, 7, 70), record(3, 7, 71));
	cr_assert_eq(candidates(3, 70, &is_certain), 0);
	cr_assert_eq(candidates(3, 71, &is_certain), 1);
}

Test(registration, that_was_freed_is_not_found)
{
	bool is_certain;

	fd_table_set(7, FD_STREAM);
	registration_free(record(3, 7, 70));
	cr_assert_null(registration_find(3, 7));
	cr_assert_eq(candidates(3, 70, &is_certain), 0);
}

Test(registration, of_one_datum_are_candidates_together)
{
	bool is_certain;

	for (int fd = 10; fd < 14; fd++) {
		fd_table_set(fd, FD_STREAM);
		record(3, fd, 5);
	}
	cr_assert_eq(candidates(3, 5, &is_certain), 4);
	cr_assert_not(is_certain);
}

Test(registration, is_not_certain_where_something_else_has_its_datum)
{
	bool is_certain;

	fd_table_set(7, FD_STREAM);
	record(3, 7, 70);
	registration_other(70);
	cr_assert_eq(candidates(3, 70, &is_certain), 1);
	cr_assert_not(is_certain);
}

Test(registration, of_one_socket_in_several_sets_are_all_its_own)
{
	uint32_t position = 0, count = 0;

	fd_table_set(7, FD_STREAM);
	fd_table_set(8, FD_STREAM);
	for (int set = 20; set < 26; set++) {
		record(set, 7, 70);
		record(set, 8, 80);
	}
	while (registration_next(7, &position))
		count++;
	cr_assert_eq(count, 6);
}

Test(registration, of_more_sockets_than_there_is_room_for_leave_the_rest_out)
{
	uint32_t recorded = 0;

	for (int fd = 0; fd < 40000; fd++) {
		fd_table_set(fd, FD_STREAM);
		recorded += record(50000, fd, (uint64_t)fd) != NULL;
	}
	cr_assert_geq(recorded, 30000);
	cr_assert_leq(recorded, REGISTRATIONS_MAX);
	/* Those of sockets that are closed make room, though nobody says so. */
	for (int fd = 0; fd < 40000; fd++)
		fd_table_set(fd, FD_OTHER);
	fd_table_set(39999, FD_STREAM);
	cr_assert_not_null(record(50000, 39999, 1));
}

Test(registration, with_data_that_never_were_before_is_found_for_all_time)
{
	bool is_certain;

	fd_table_set(7, FD_STREAM);
	for (uint64_t data = 1; data < 300000; data++) {
		record(3, 7, data << 20);
		cr_assert_eq(candidates(3, data << 20, &is_certain), 1);
	}
}

Test(registration, of_a_set_are_forgotten_when_its_number_is_anothers)
{
	int set = epoll_create1(0);

	cr_assert(epoll_set_know(set));
	fd_table_set(500, FD_STREAM);
	record(set, 500, 70);
	cr_assert(epoll_set_know(set));
	cr_assert_not_null(registration_find(set, 500));
	/* As close() says. */
	fd_table_set(set, FD_OTHER);
	cr_assert(epoll_set_know(set));
	cr_assert_null(registration_find(set, 500));
}

Test(registration, of_a_set_are_not_known_where_a_connection_stands)
{
	struct connection *stale;

	cr_assert_not_null(fd_table_connect(9, &stale));
	cr_assert_not(epoll_set_know(9));
	cr_assert_not_null(fd_table_find(9));
	cr_assert_not(epoll_set_know(-1));
}

Test(registration, that_nobody_saw_is_read_from_the_kernel)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 0xfedcba9876543210 };
	int set = epoll_create1(0), ends[2], pipes[2];
	struct registration *found;
	bool is_certain;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	cr_assert_eq(pipe(pipes), 0);
	fd_table_set(ends[0], FD_STREAM6);
	cr_assert_eq(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event), 0);
	event.data.u64 = 5;
	cr_assert_eq(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event), 0);
	cr_assert(epoll_set_know(set));
	found = registration_find(set, ends[0]);
	cr_assert_not_null(found);
	cr_assert_eq(found->events, EPOLLIN | EPOLLET);
	cr_assert_eq(found->data, 0xfedcba9876543210);
	cr_assert_null(registration_find(set, pipes[0]));
	fd_table_set(600, FD_STREAM);
	record(set, 600, 5);
	cr_assert_eq(candidates(set, 5, &is_certain), 1);
	cr_assert_not(is_certain);
}

Test(registration, of_a_set_is_known_by_its_other_number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 70 };
	int set = epoll_create1(0), copy = dup(set), other = epoll_create1(0), ends[2];
	struct connection *stale;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	cr_assert_not_null(fd_table_connect(ends[0], &stale));
	cr_assert(epoll_set_know(set) && epoll_set_know(copy) && epoll_set_know(other));
	cr_assert_eq(epoll_ctl(copy, EPOLL_CTL_ADD, ends[0], &event), 0);
	record(copy, ends[0], 70);
	cr_assert_eq(registrations_name(set), set);
	cr_assert_not(registrations_same(set, 71));
	cr_assert_not(registrations_same(other, 70));
	cr_assert(registrations_same(set, 70));
	cr_assert_eq(registrations_name(set), copy);
	fd_table_set(copy, FD_OTHER);
	cr_assert_eq(registrations_name(set), set);
}

Test(registration, is_changed_with_signals_blocked)
{
	uint64_t before, signals;

	before = thread_block_signals();
	thread_restore_signals(before);
	signals = registrations_lock(7);
	cr_assert_eq(signals, before);
	cr_assert(thread_blocks_signals());
	registrations_unlock(7, signals);
	signals = thread_block_signals();
	thread_restore_signals(signals);
	cr_assert_eq(signals, before);
}
