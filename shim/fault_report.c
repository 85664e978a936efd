/* SPDX-License-Identifier: MIT */
#include "shim/fault_report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/real.h"
#include "shim/thread.h"

static const char *report_path = "";

static struct {
	bool is_on;
	struct injection *injections;
	size_t count;
} replay;

/* Past the limit the kernel would raise SIGXFSZ. */
static bool fits(const struct stat *file, size_t length)
{
	struct rlimit limit;

	return !raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) &&
	       (limit.rlim_cur == RLIM_INFINITY ||
			       (uint64_t)file->st_size + length <= limit.rlim_cur);
}

/* The file may have grown to the limit meanwhile: what that raised must not reach the program. */
static void take_back_signal(void)
{
	static const struct timespec at_once;
	uint64_t raised = 1ull << (SIGXFSZ - 1);

	raw_syscall(SYS_rt_sigtimedwait, (long)&raised, 0, (long)&at_once, sizeof(raised), 0, 0);
}

/* Called with all signals blocked. */
static bool append(const char *line, size_t length)
{
	long fd = raw_syscall(SYS_openat, AT_FDCWD, (long)report_path, INJECTION_REPORT_FLAGS, 0600,
			0, 0);
	struct stat file;
	long written = 0;

	if (fd < 0)
		return false;
	if (!raw_syscall(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) && S_ISREG(file.st_mode) &&
			fits(&file, length))
		written = raw_syscall(SYS_write, fd, (long)line, (long)length, 0, 0, 0);
	if (written == -EFBIG)
		take_back_signal();
	raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	return written == (long)length;
}

bool fault_report(const struct injection *injection)
{
	char line[INJECTION_LINE_SIZE];
	uint64_t signals;
	bool is_told;

	if (!report_path[0])
		return true;
	if (!own_calls_begin())
		return false;
	/* Nor does a handler leave by siglongjmp with the file open. */
	signals = thread_block_signals();
	is_told = append(line, injection_format(injection, line));
	thread_restore_signals(signals);
	own_calls_end();
	return is_told;
}

/* What the file has, as far as it could be read. */
static size_t read_all(int fd, char *ret, size_t size)
{
	size_t length = 0;

	while (length < size) {
		ssize_t got = real()->read(fd, ret + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	return length;
}

/* A copy of the file in memory, which nobody makes shorter while it is read; or NULL. */
static char *copy_file(const char *path, size_t *ret_length, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat file;
	void *memory = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &file) && S_ISREG(file.st_mode) && file.st_size > 0) {
		*ret_size = (size_t)file.st_size;
		memory = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	}
	if (memory != MAP_FAILED)
		*ret_length = read_all(fd, memory, *ret_size);
	real()->close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t count = 1;

	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	return count;
}

static void read_lines(const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);

		if (length && !injection_parse(text, length, &replay.injections[replay.count]))
			replay.count++;
		text += length + 1;
	}
	injection_sort(replay.injections, replay.count);
}

static void replay_start(const char *path)
{
	size_t length = 0, size = 0;
	char *text = copy_file(path, &length, &size);
	void *memory;

	replay.is_on = true;
	if (!text) {
		log_line("SHUNT_REPLAY: nothing could be read: nothing is injected");
		return;
	}
	memory = mmap(NULL, count_lines(text, length) * sizeof(struct injection),
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED) {
		replay.injections = memory;
		read_lines(text, length);
	}
	munmap(text, size);
}

void fault_report_start(const char *report, const char *replayed)
{
	int error = errno;

	report_path = report;
	if (replayed[0])
		replay_start(replayed);
	errno = error;
}

bool fault_report_is_replayed(void)
{
	return replay.is_on;
}

const struct injection *fault_report_find(const char *rule, struct fault_unit unit)
{
	return injection_find(replay.injections, replay.count, rule, unit);
}
