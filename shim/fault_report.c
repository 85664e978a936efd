/* SPDX-License-Identifier: MIT */
#include "shim/fault_report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/log.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/real.h"

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

static void append(const char *line, size_t length)
{
	long flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	long fd = raw_syscall(SYS_openat, AT_FDCWD, (long)report_path, flags, 0600, 0, 0);
	struct stat file;

	if (fd < 0)
		return;
	if (!raw_syscall(SYS_fstat, fd, (long)&file, 0, 0, 0, 0) && S_ISREG(file.st_mode) &&
			fits(&file, length))
		raw_syscall(SYS_write, fd, (long)line, (long)length, 0, 0, 0);
	raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

void fault_report(const struct injection *injection)
{
	char line[INJECTION_LINE_SIZE];

	if (!report_path[0] || !own_calls_begin())
		return;
	append(line, injection_format(injection, line));
	own_calls_end();
}

/* The file in memory, or NULL. */
static char *map_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat file;
	void *memory = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &file) && file.st_size > 0)
		memory = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	real()->close(fd);
	*ret_size = memory == MAP_FAILED ? 0 : (size_t)file.st_size;
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
	size_t size = 0;
	char *text = map_file(path, &size);
	void *memory;

	replay.is_on = true;
	if (!text) {
		log_line("SHUNT_REPLAY: nothing could be read: nothing is injected");
		return;
	}
	memory = mmap(NULL, count_lines(text, size) * sizeof(struct injection),
			PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED) {
		replay.injections = memory;
		read_lines(text, size);
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
