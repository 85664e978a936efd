/* SPDX-License-Identifier: MIT */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Never 0 to 2: where the program runs without them, what it prints must not meet our file. */
static int open_high(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fd > 2)
		return fd;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int error = errno;
	close(fd);
	errno = error;
	return high;
}

static const char *read_whole(int fd, char *ret, size_t size, size_t *ret_length)
{
	struct stat stat;
	size_t length = 0;

	if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))
		return "not a regular file";
	while (length < size) {
		ssize_t got = read(fd, ret + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return "cannot be read";
		if (got == 0)
			break;
		length += (size_t)got;
	}
	if (length == size)
		return "too large";
	*ret_length = length;
	return NULL;
}

static const char *open_error(int error)
{
	if (error == ENOENT)
		return "no such file";
	return error == EACCES ? "permission denied" : "cannot be opened";
}

const char *file_read(const char *path, char *ret, size_t size, size_t *ret_length)
{
	int saved = errno;
	int fd = open_high(path);
	const char *error = fd < 0 ? open_error(errno) : read_whole(fd, ret, size, ret_length);

	if (fd >= 0)
		close(fd);
	errno = saved;
	return error;
}
