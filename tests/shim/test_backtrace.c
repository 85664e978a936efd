/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/backtrace.h"
#include "shim/log.h"
#include "tests/support/sanitized.h"

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

/* A filter that lets nothing through but the way out: one that unwinds dies of it. */
static void allow_exit_only(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
}

Test(backtrace, makes_no_system_call_once_the_log_has_stopped)
{
	int status = 0;
	pid_t child;

	SKIP_IF_SANITIZED("its own system calls are not in the filter");
	backtrace_start();
	child = fork();
	if (child == 0) {
		log_stop();
		allow_exit_only();
		backtrace_log();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0);
}
