/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/backtrace.h"
#include "shim/log.h"

static char directory[64], path[96];

static void log_into_file(void)
{
	strcpy(directory, "/tmp/shunt-test-backtrace-XXXXXX");
	cr_assert_not_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/log", directory);
	log_start(LOG_FILE, path);
}

static void remove_directory(void)
{
	unlink(path);
	rmdir(directory);
}

TestSuite(backtrace, .init = log_into_file, .fini = remove_directory);

static size_t lines_with(const char *text)
{
	char line[LOG_LINE_SIZE + 1];
	size_t count = 0;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return count;
}

Test(backtrace, nothing_is_said_where_nobody_asked)
{
	backtrace_log();
	cr_assert_eq(lines_with(""), 0);
}

Test(backtrace, tells_who_called_or_why_it_cannot)
{
	bool has_library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	dlerror();
	backtrace_start();
	cr_assert_null(dlerror());
	errno = EDOM;
	backtrace_log();
	cr_assert_eq(errno, EDOM);
	cr_assert_eq(lines_with("no backtraces: "), has_library ? 0 : 1);
	if (!has_library)
		cr_skip("libunwind is not installed");
	cr_assert_gt(lines_with("called by: "), 2);
	cr_assert_gt(lines_with("called by: libcriterion"), 0);
}
