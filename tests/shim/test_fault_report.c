/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "shim/fault_report.h"
#include "shim/own_call.h"

static char path[] = "/tmp/test_fault_report_XXXXXX";

static void make_file(void)
{
	int fd = mkstemp(path);

	real_resolve();
	cr_assert_geq(fd, 0);
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

TestSuite(fault_report, .init = make_file, .fini = remove_file, .timeout = 60);

static size_t read_file(char *ret, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t length;

	cr_assert_not_null(file);
	length = fread(ret, 1, size - 1, file);
	ret[length] = '\0';
	fclose(file);
	return length;
}

static const struct injection one = { "A", { 3, 1 }, FAULT_LATENCY, 300000000 };
static const struct injection other = { "B", { 1, 2 }, FAULT_RESET, 0 };

Test(fault_report, a_line_is_appended_for_each)
{
	char line[INJECTION_LINE_SIZE], text[1024], expected[1024];

	fault_report_start(path, "");
	errno = 77;
	cr_expect(fault_report(&one));
	cr_expect(fault_report(&other));
	cr_expect_eq(errno, 77);
	injection_format(&one, line);
	strcpy(expected, line);
	injection_format(&other, line);
	strcat(expected, line);
	read_file(text, sizeof(text));
	cr_expect_str_eq(text, expected);
	cr_expect_not(fault_report_is_replayed());
}

Test(fault_report, without_a_file_there_is_nothing_to_fail)
{
	fault_report_start("", "");
	cr_expect(fault_report(&one));
}

Test(fault_report, nothing_is_written_under_a_filter)
{
	char text[64];

	fault_report_start(path, "");
	own_calls_forbid();
	cr_expect_not(fault_report(&one));
	cr_expect_eq(read_file(text, sizeof(text)), 0);
}

/* A signal would end the test. */
Test(fault_report, and_nothing_past_the_limit_of_files)
{
	struct rlimit limit = { 10, 10 };
	char text[64];

	fault_report_start(path, "");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_not(fault_report(&one));
	cr_expect_eq(read_file(text, sizeof(text)), 0);
}

Test(fault_report, and_nothing_where_no_descriptor_is_left)
{
	struct rlimit limit, none;
	bool is_told;

	fault_report_start(path, "");
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	is_told = fault_report(&one);
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_expect_not(is_told);
}

/* The name that nothing has yet, beside the file. */
static const char *another_path(void)
{
	static char another[sizeof(path) + 8];

	snprintf(another, sizeof(another), "%s-more", path);
	return another;
}

Test(fault_report, and_nothing_through_a_link)
{
	char text[64];

	cr_assert_eq(symlink(path, another_path()), 0);
	fault_report_start(another_path(), "");
	cr_expect_not(fault_report(&one));
	unlink(another_path());
	cr_expect_eq(read_file(text, sizeof(text)), 0);
}

Test(fault_report, and_nothing_into_what_is_no_file)
{
	fault_report_start("/dev/null", "");
	cr_expect_not(fault_report(&one));
	fault_report_start("/tmp", "");
	cr_expect_not(fault_report(&one));
}

Test(fault_report, and_nobody_waits_for_the_other_end_of_a_pipe)
{
	char byte;
	int fd;

	cr_assert_eq(mkfifo(another_path(), 0600), 0);
	fault_report_start(another_path(), another_path());
	cr_expect_not(fault_report(&one));
	cr_expect(fault_report_is_replayed());
	cr_expect_null(fault_report_find("A", one.unit));
	fd = open(another_path(), O_RDONLY | O_NONBLOCK);
	cr_expect_not(fault_report(&one));
	cr_expect_eq(read(fd, &byte, 1), 0, "nothing was written");
	close(fd);
	unlink(another_path());
}

Test(fault_report, what_was_reported_is_found_again)
{
	const struct injection *found;

	fault_report_start(path, "");
	fault_report(&other);
	fault_report(&one);
	fault_report_start("", path);
	cr_assert(fault_report_is_replayed());
	found = fault_report_find("A", (struct fault_unit){ 3, 1 });
	cr_assert_not_null(found);
	cr_expect_eq(found->value, one.value);
	cr_expect_null(fault_report_find("A", (struct fault_unit){ 3, 2 }));
	cr_expect_not_null(fault_report_find("B", other.unit));
}

Test(fault_report, of_a_file_that_is_not_there_nothing_is_injected)
{
	fault_report_start("", "/nowhere/at/all");
	cr_expect(fault_report_is_replayed());
	cr_expect_null(fault_report_find("A", one.unit));
}

Test(fault_report, a_replay_injects_what_the_report_says_and_nothing_else)
{
	static const struct injection second = { "A", { 2, 1 }, FAULT_REFUSE, 0 };

	fault_report_start(path, "");
	fault_report(&second);
	strcpy(runtime.config.replay_path, path);
	faults_open(SOCK_STREAM);
	faults_start("fault A = 127.0.0.1:PORT refuse times=1 for=1ns\n");
	cr_expect_eq(connect_fd(socket_new(0)), 0);
	cr_expect_eq(connect_fd(socket_new(0)), -1);
	cr_expect_eq(errno, ECONNREFUSED);
	cr_expect_eq(connect_fd(socket_new(0)), 0);
	cr_expect_eq(injected(0), 1);
}

/* However many are open. */
Test(fault_report, a_replay_refuses_the_connections_that_were_beyond_the_number)
{
	static const struct injection second = { "A", { 2, 1 }, FAULT_MAXCONN, 1 };

	fault_report_start(path, "");
	cr_assert(fault_report(&second));
	strcpy(runtime.config.replay_path, path);
	faults_open(SOCK_STREAM);
	faults_start("fault A = 127.0.0.1:PORT maxconn=1\n");
	for (int number = 1; number <= 3; number++) {
		int fd = socket_new(0);

		cr_expect_eq(connect_fd(fd), number == 2 ? -1 : 0, "%d", number);
		hook_close(fd);
	}
	cr_expect_eq(injected(0), 1);
}
