/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shim/fd_table.h"
#include "tests/support/sanitized.h"

static struct connection *connect_fd(int fd)
{
	struct connection *stale;
	struct connection *connection = fd_table_connect(fd, &stale);

	cr_assert_null(stale);
	cr_assert_not_null(connection);
	return connection;
}

static void start(void)
{
	cr_assert(fd_table_start());
}

TestSuite(fd_table, .init = start);

Test(fd_table_start, nothing_is_ours_before)
{
	cr_expect_null(fd_table_find(0));
	cr_expect_null(fd_table_find(3));
	cr_expect_eq(fd_table_kind(3), FD_OTHER);
	cr_expect_null(fd_table_set(3, FD_STREAM));
}

Test(fd_table, bad_descriptors_are_nobodys)
{
	struct connection *stale;
	int fds[] = { -1, INT32_MIN, INT32_MAX, 1 << 20 };

	for (size_t index = 0; index < sizeof(fds) / sizeof(fds[0]); index++) {
		cr_expect_null(fd_table_find(fds[index]));
		cr_expect_null(fd_table_set(fds[index], FD_STREAM));
		cr_expect_null(fd_table_connect(fds[index], &stale));
		cr_expect_null(fd_table_copy(3, fds[index]));
		cr_expect_eq(fd_table_kind(fds[index]), FD_OTHER);
	}
}

Test(fd_table, high_descriptors_are_guarded)
{
	struct connection *connection = connect_fd(60000);

	cr_expect_eq(fd_table_find(60000), connection);
}

Test(fd_table, the_last_copy_ends_a_connection)
{
	struct connection *connection = connect_fd(5);

	cr_expect_null(fd_table_copy(5, 6));
	cr_expect_null(fd_table_copy(6, 7));
	cr_expect_null(fd_table_set(5, FD_OTHER));
	cr_expect_eq(fd_table_find(7), connection);
	cr_expect_null(fd_table_set(6, FD_OTHER));
	cr_expect_eq(fd_table_set(7, FD_OTHER), connection);
	cr_expect_null(fd_table_find(7));
}

Test(fd_table, a_copy_over_a_connection_ends_it)
{
	struct connection *first = connect_fd(5);
	struct connection *second = connect_fd(6);

	cr_expect_eq(fd_table_copy(5, 6), second);
	cr_expect_eq(fd_table_find(6), first);
}

Test(fd_table, a_copy_onto_itself_changes_nothing)
{
	struct connection *connection = connect_fd(5);

	cr_expect_null(fd_table_copy(5, 5));
	cr_expect_eq(fd_table_set(5, FD_OTHER), connection);
}

Test(fd_table, a_copy_of_something_unknown_forgets_what_stood_there)
{
	struct connection *connection = connect_fd(5);

	cr_expect_eq(fd_table_copy(9, 5), connection);
	cr_expect_eq(fd_table_kind(5), FD_OTHER);
}

Test(fd_table, a_new_connection_reports_the_stale_one)
{
	struct connection *old = connect_fd(5);
	struct connection *stale;
	struct connection *new = fd_table_connect(5, &stale);

	cr_expect_eq(stale, old);
	cr_expect_eq(fd_table_find(5), new);
}

Test(fd_table, a_freed_connection_comes_back_empty)
{
	struct connection *connection = connect_fd(5);

	atomic_store(&connection->permit, 77);
	atomic_store(&connection->exchange.flags, EXCHANGE_OPEN);
	fd_table_free(fd_table_set(5, FD_OTHER));
	cr_expect_eq(connect_fd(6), connection);
	cr_expect_eq(atomic_load(&connection->permit), 0);
	cr_expect_eq(atomic_load(&connection->exchange.flags), 0);
}

Test(fd_table, a_stream_alone_is_adopted)
{
	const struct exchange exchange = { .flags = EXCHANGE_ESTABLISHED };
	struct connection *connection;

	cr_expect_null(fd_table_adopt(-1, &exchange));
	cr_expect_null(fd_table_adopt(5, &exchange));
	fd_table_set(5, FD_STREAM6);
	cr_expect_geq(fd_table_end(), 6);
	connection = fd_table_adopt(5, &exchange);
	cr_assert_not_null(connection);
	cr_expect_eq(fd_table_find(5), connection);
	cr_expect_eq(connection->kind, FD_STREAM6);
	cr_expect(exchange_has(&connection->exchange, EXCHANGE_ESTABLISHED));
	cr_expect_null(fd_table_adopt(5, &exchange));
	cr_expect_eq(fd_table_set(5, FD_OTHER), connection);
}

Test(fd_table, an_empty_pool_leaves_the_descriptor_alone)
{
	struct connection *stale;
	int fd = 0;

	while (fd_table_connect(fd, &stale))
		fd++;
	cr_expect_eq((uint32_t)fd, fd_table.capacity);
	cr_expect_eq(fd_table_kind(fd), FD_OTHER);
	fd_table_free(fd_table_set(3, FD_OTHER));
	cr_expect_not_null(fd_table_connect(3, &stale));
}

static int visits;

static void visit(struct connection *connection)
{
	(void)connection;
	visits++;
}

Test(fd_table, each_visits_those_with_a_descriptor)
{
	connect_fd(5);
	connect_fd(6);
	fd_table_copy(6, 7);
	connect_fd(8);
	fd_table_free(fd_table_set(5, FD_OTHER));
	fd_table_each(visit);
	cr_expect_eq(visits, 2);
}

#define THREADS 4
#define ROUNDS 20000

/* Each thread makes, copies and ends connections on descriptors of its own: the pool is what they
 * share. A connection that two of them hold would show a foreign mark. */
static void *churn(void *argument)
{
	int fd = 10 + 2 * (int)(intptr_t)argument;
	size_t foreign = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct connection *stale;
		struct connection *connection = fd_table_connect(fd, &stale);

		atomic_store(&connection->permit, (uint64_t)fd);
		fd_table_copy(fd, fd + 1);
		fd_table_set(fd, FD_OTHER);
		foreign += atomic_load(&connection->permit) != (uint64_t)fd;
		fd_table_free(fd_table_set(fd + 1, FD_OTHER));
	}
	return (void *)foreign;
}

Test(fd_table, racing_threads_never_share_a_connection)
{
	pthread_t threads[THREADS];
	void *foreign;

	for (intptr_t index = 0; index < THREADS; index++)
		pthread_create(&threads[index], NULL, churn, (void *)index);
	for (int index = 0; index < THREADS; index++) {
		pthread_join(threads[index], &foreign);
		cr_expect_eq((size_t)foreign, 0);
	}
	cr_expect_eq(atomic_load(&fd_table.live), 0);
}

/* Bytes of address space. */
static size_t space_used(void)
{
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_set(int resource, rlim_t bytes)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(resource, &limit), 0);
	limit.rlim_cur = bytes;
	cr_assert_eq(setrlimit(resource, &limit), 0);
}

static void takes_little_of(int resource)
{
	size_t before = space_used();
	rlim_t limit = before + (64 << 20);

	SKIP_IF_SANITIZED("its shadow is terabytes large");
	limit_set(resource, limit);
	cr_assert(fd_table_start());
	cr_assert_leq(space_used() - before, limit / 32 + (512 << 10));
	cr_assert_geq(fd_table.size, 65536);
	cr_assert_not_null(connect_fd(60000));
}

Test(fd_table_start, of_limited_address_space_little_is_taken)
{
	takes_little_of(RLIMIT_AS);
}

Test(fd_table_start, of_limited_data_little_is_taken)
{
	takes_little_of(RLIMIT_DATA);
}

Test(fd_table_start, what_was_taken_in_vain_goes_back)
{
	size_t before = space_used();
	size_t room = (256 << 10) + 8192; /* the table, and not the pool */
	bool is_started;

	SKIP_IF_SANITIZED("its shadow is terabytes large");
	limit_set(RLIMIT_AS, before + room);
	is_started = fd_table_start();
	limit_set(RLIMIT_AS, RLIM_INFINITY);
	cr_assert_not(is_started);
	cr_assert_eq(space_used(), before);
	cr_assert_null(fd_table_find(3));
}

Test(fd_table, what_has_no_descriptor_is_not_pinned)
{
	struct connection *connection = connect_fd(5);

	cr_expect(fd_table_pin(connection));
	fd_table_unpin(connection);
	fd_table_free(fd_table_set(5, FD_OTHER));
	cr_expect_not(fd_table_pin(connection));
	cr_expect_eq(atomic_load(&connection->pins), 0);
}

Test(fd_table, a_descriptor_that_names_a_connection_is_found)
{
	struct connection *connection = connect_fd(5);

	cr_expect_null(fd_table_copy(5, 900));
	cr_expect_eq(fd_table_descriptor(connection), 5);
	cr_expect_null(fd_table_set(5, FD_OTHER));
	cr_expect_eq(fd_table_descriptor(connection), 900);
	cr_expect_eq(fd_table_set(900, FD_OTHER), connection);
	cr_expect_eq(fd_table_descriptor(connection), -1);
}

Test(fd_table, the_pool_is_walked_up_to_what_was_ever_used)
{
	struct connection *connection = connect_fd(5);

	cr_expect_eq(fd_table_at(0), connection);
	cr_expect_null(fd_table_at(1));
	cr_expect_null(fd_table_at(UINT32_MAX));
}

Test(fd_table, a_new_connection_remembers_no_deadline)
{
	struct connection *connection = connect_fd(5);

	atomic_store(&connection->deadline.timeout_ns, 1);
	atomic_store(&connection->deadline.senders, 1);
	fd_table_free(fd_table_set(5, FD_OTHER));
	cr_assert_eq(connect_fd(6), connection);
	cr_expect_eq(atomic_load(&connection->deadline.timeout_ns), 0);
	cr_expect_eq(atomic_load(&connection->deadline.senders), 0);
}
