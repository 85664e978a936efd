/* SPDX-License-Identifier: MIT */
#include "core/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/shunt-file-XXXXXX";
static char path[64];

static void make_directory(void)
{
	cr_assert_not_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/conf", directory);
}

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

static void write_file(const char *text, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	close(fd);
}

TestSuite(file, .init = make_directory, .fini = remove_directory);

Test(file, is_read_whole)
{
	char text[16];
	size_t length = 0;

	write_file("hello\n", 6);
	cr_expect_null(file_read(path, text, sizeof(text), &length));
	cr_expect_eq(length, 6);
	cr_expect_arr_eq(text, "hello\n", 6);
	write_file("", 0);
	cr_expect_null(file_read(path, text, sizeof(text), &length));
	cr_expect_eq(length, 0);
}

Test(file, one_byte_too_large_is_refused)
{
	char text[6];
	size_t length = 77;

	write_file("12345", 5);
	cr_expect_null(file_read(path, text, sizeof(text), &length));
	cr_expect_eq(length, 5);
	length = 77;
	write_file("123456", 6);
	cr_expect_str_eq(file_read(path, text, sizeof(text), &length), "too large");
	cr_expect_eq(length, 77);
}

Test(file, what_cannot_be_read_is_said_and_errno_kept)
{
	char text[16];
	size_t length;

	errno = EXDEV;
	cr_expect_str_eq(file_read("/nonexistent/conf", text, sizeof(text), &length),
			"no such file");
	cr_expect_str_eq(file_read("/tmp", text, sizeof(text), &length), "not a regular file");
	cr_expect_str_eq(file_read("/dev/zero", text, sizeof(text), &length), "not a regular file");
	cr_expect_eq(errno, EXDEV);
}

Test(file, a_pipe_without_a_writer_does_not_block, .timeout = 30)
{
	char text[16];
	size_t length;

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_str_eq(file_read(path, text, sizeof(text), &length), "not a regular file");
}

/* Exit status: the lowest free descriptor afterwards. */
static int read_without_standard_descriptors(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		char text[16];
		size_t length;

		close(0);
		close(1);
		close(2);
		if (file_read(path, text, sizeof(text), &length))
			_exit(100);
		_exit(open("/dev/null", O_RDONLY));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

Test(file, the_standard_descriptors_stay_free)
{
	write_file("x", 1);
	cr_expect_eq(read_without_standard_descriptors(), 0);
}

Test(file, no_descriptor_is_left_behind)
{
	char text[16];
	size_t length;
	int before = dup(0);

	close(before);
	write_file("x", 1);
	file_read(path, text, sizeof(text), &length);
	file_read("/tmp", text, sizeof(text), &length);
	int after = dup(0);
	close(after);
	cr_expect_eq(before, after);
}
