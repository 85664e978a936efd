/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/runtime.h"

static char directory[64], path[96];

static void make_directory(void)
{
	strcpy(directory, "/tmp/shunt-test-log-XXXXXX");
	cr_assert_not_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/log", directory);
}

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

TestSuite(log, .init = make_directory, .fini = remove_directory);

/* The whole file, or "" where there is none. Static. */
static const char *content(void)
{
	static char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[size > 0 ? size : 0] = '\0';
	return text;
}

/* Puts a new file on descriptor 2; returns a copy of what was there. */
static int stderr_into_file(int flags)
{
	int kept = dup(2);
	int fd = open(path, flags, 0600);

	cr_assert_geq(fd, 0);
	dup2(fd, 2);
	close(fd);
	return kept;
}

static void stderr_back(int kept)
{
	dup2(kept, 2);
	close(kept);
}

static int lowest_free_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

Test(log, is_silent_unless_started)
{
	int kept = stderr_into_file(O_RDWR | O_CREAT);

	log_line("nobody asked");
	stderr_back(kept);
	cr_assert_str_eq(content(), "");
}

Test(log, a_line_goes_to_stderr)
{
	int kept = stderr_into_file(O_RDWR | O_CREAT);

	log_start(LOG_STDERR, NULL);
	log_line("%s is %s", "PAY", "open");
	stderr_back(kept);
	cr_assert_str_eq(content(), "shunt: PAY is open\n");
}

Test(log, a_file_that_took_the_place_of_stderr_is_left_alone)
{
	int kept = dup(2);

	log_start(LOG_STDERR, NULL);
	close(2);
	cr_assert_eq(open(path, O_RDWR | O_CREAT, 0600), 2);
	log_line("not into the program's file");
	stderr_back(kept);
	cr_assert_str_eq(content(), "");
}

Test(log, a_stderr_that_was_closed_from_the_start_stays_silent)
{
	int kept = dup(2);

	close(2);
	log_start(LOG_STDERR, NULL);
	cr_assert_eq(open(path, O_RDWR | O_CREAT, 0600), 2);
	log_line("not into the program's file");
	stderr_back(kept);
	cr_assert_str_eq(content(), "");
}

Test(log, a_stderr_that_nobody_reads_raises_no_signal)
{
	int ends[2], kept = dup(2);

	cr_assert_eq(pipe(ends), 0);
	dup2(ends[1], 2);
	close(ends[1]);
	log_start(LOG_STDERR, NULL);
	close(ends[0]);
	signal(SIGPIPE, SIG_DFL);
	log_line("into the void");
	stderr_back(kept);
}

Test(log, a_full_pipe_does_not_hold_the_program_up, .timeout = 20)
{
	int ends[2], kept = dup(2);
	char page[4096] = "";

	cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	dup2(ends[1], 2);
	log_start(LOG_STDERR, NULL);
	log_line("no room");
	stderr_back(kept);
}

Test(log, a_file_gets_whole_lines_with_time_and_pid)
{
	char expected[128];
	const char *text;

	log_start(LOG_FILE, path);
	log_line("first");
	log_line("second");
	text = content();
	snprintf(expected, sizeof(expected), "Z shunt[%d]: first\n", (int)getpid());
	cr_assert_eq(strncmp(text + 19, expected, strlen(expected)), 0, "%s", text);
	cr_assert_not_null(strstr(text, "second\n"));
}

Test(log, a_file_is_the_users_own_and_holds_no_descriptor)
{
	struct stat status;
	int before = lowest_free_descriptor();

	log_start(LOG_FILE, path);
	log_line("line");
	cr_assert_eq(lowest_free_descriptor(), before);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600);
}

Test(log, a_link_is_not_followed)
{
	char other[128];
	struct stat status;

	snprintf(other, sizeof(other), "%s/other", directory);
	cr_assert_eq(symlink(other, path), 0);
	log_start(LOG_FILE, path);
	log_line("line");
	cr_assert_eq(stat(other, &status), -1);
}

Test(log, a_fifo_is_not_waited_for, .timeout = 20)
{
	int reader;
	char byte;

	cr_assert_eq(mkfifo(path, 0600), 0);
	log_start(LOG_FILE, path);
	log_line("nobody reads");
	reader = open(path, O_RDONLY | O_NONBLOCK);
	log_line("somebody could");
	cr_assert_eq(read(reader, &byte, 1), 0);
	close(reader);
}

Test(log, a_limit_on_file_size_is_obeyed_without_a_signal)
{
	struct rlimit limit = { 100, 100 };

	log_start(LOG_FILE, path);
	signal(SIGXFSZ, SIG_DFL);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log_line("%s", "a line of which two do not fit into a hundred bytes");
	log_line("%s", "a line of which two do not fit into a hundred bytes");
	cr_assert_not_null(strstr(content(), "hundred bytes\n"));
	cr_assert_leq(strlen(content()), 100);
}

Test(log, a_path_that_cannot_be_opened_is_no_trouble)
{
	log_start(LOG_FILE, "/proc/no/such/file");
	log_line("line");
}

Test(log, errno_stays)
{
	log_start(LOG_FILE, "/proc/no/such/file");
	errno = EDOM;
	log_line("line");
	cr_assert_eq(errno, EDOM);
}

Test(log, a_long_line_is_cut_and_still_ends)
{
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_start(LOG_FILE, path);
	log_line("%s", text);
	cr_assert_leq(strlen(content()), LOG_LINE_SIZE);
	cr_assert_eq(content()[strlen(content()) - 1], '\n');
}

Test(log, is_silent_again_once_stopped)
{
	log_start(LOG_FILE, path);
	log_stop();
	log_line("line");
	cr_assert_str_eq(content(), "");
}

Test(log, is_silent_while_a_filter_is_being_set)
{
	log_start(LOG_FILE, path);
	runtime_filter_begins();
	cr_assert_not(log_is_on());
	log_line("one");
	cr_assert_str_eq(content(), "");
	runtime_filter_ended(false);
	cr_assert(log_is_on());
	log_line("two");
	cr_assert_str_neq(content(), "");
}

Test(log, tells_the_time_as_the_calendar_does)
{
	char ours[24], theirs[24];
	struct tm broken;

	/* Steps that are no multiple of a day, over leap years, centuries and 2038. */
	for (time_t now = 0; now < 16725225600; now += 86400 * 13 + 3661) {
		strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &broken));
		cr_assert_str_eq(log_format_time((uint64_t)now, ours), theirs);
	}
	cr_assert_str_eq(log_format_time(951782400, ours), "2000-02-29T00:00:00Z");
}
