/* SPDX-License-Identifier: MIT */
#include "shim/fdinfo.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "shim/raw.h"

/* A line "tfd: 7 events: 80000001 data: 7 ..." of /proc/self/fdinfo, character by character. */
struct line {
	uint64_t numbers[3];
	uint32_t field; /* which number comes; past the last: the rest of the line is nothing */
	uint32_t at;	/* characters of its label that were there */
	bool is_inside; /* of the number */
	bool is_lost;	/* this line is another */
};

static const char *const labels[] = { "tfd:", "events:", "data:" };
static const uint64_t bases[] = { 10, 16, 16 };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void line_take(struct line *line, char c)
{
	const char *label;
	int value = digit(c);

	if (line->is_lost || line->field >= 3)
		return;
	label = labels[line->field];
	if (label[line->at]) {
		if (c == label[line->at])
			line->at++;
		else
			line->is_lost = line->at || c != ' ';
	} else if (value >= 0) {
		line->is_inside = true;
		line->numbers[line->field] = line->numbers[line->field] * bases[line->field] +
				(uint64_t)value;
	} else if (line->is_inside) {
		line->field++;
		line->at = 0;
		line->is_inside = false;
	}
}

static void path_write(char path[static 40], int set)
{
	static const char directory[] = "/proc/self/fdinfo/";
	char digits[12];
	uint32_t count = 0, end = 0;

	for (uint32_t number = (uint32_t)set; count == 0 || number; number /= 10)
		digits[count++] = (char)('0' + number % 10);
	for (; directory[end]; end++)
		path[end] = directory[end];
	while (count)
		path[end++] = digits[--count];
	path[end] = '\0';
}

static bool line_is_whole(const struct line *line)
{
	return line->field == 3 || (line->field == 2 && line->is_inside);
}

bool fdinfo_each(int set, void (*each)(int set, int fd, uint32_t events, uint64_t data))
{
	/* These the kernel adds by itself. */
	const uint32_t added = EPOLLERR | EPOLLHUP;
	struct line line = { .field = 0 };
	char path[40], text[400];
	long file, size;

	path_write(path, set);
	file = raw_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (file < 0)
		return false;
	while ((size = raw_syscall(SYS_read, file, (long)text, sizeof(text), 0, 0, 0)) > 0) {
		for (long i = 0; i < size; i++) {
			if (text[i] != '\n') {
				line_take(&line, text[i]);
				continue;
			}
			if (line_is_whole(&line))
				each(set, (int)line.numbers[0], (uint32_t)line.numbers[1] & ~added,
						line.numbers[2]);
			line = (struct line){ .field = 0 };
		}
	}
	raw_syscall(SYS_close, file, 0, 0, 0, 0, 0);
	return size == 0;
}
