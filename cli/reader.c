/* SPDX-License-Identifier: MIT */
#include "cli/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool reader_bytes(int fd, uint64_t offset, void *ret, size_t size)
{
	uint8_t *bytes = ret;
	size_t done = 0;

	if (size > INT64_MAX || offset > (uint64_t)INT64_MAX - size)
		return false;
	while (done < size) {
		ssize_t length = pread(fd, bytes + done, size - done, (off_t)(offset + done));

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return false;
		done += (size_t)length;
	}
	return true;
}

void *reader_copy(int fd, uint64_t offset, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (copy && reader_bytes(fd, offset, copy, size))
		return copy;
	free(copy);
	return NULL;
}

bool reader_text(int fd, uint64_t offset, char *ret, size_t size)
{
	ssize_t length;

	if (offset > (uint64_t)INT64_MAX - size)
		return false;
	length = pread(fd, ret, size, (off_t)offset);
	return length > 0 && memchr(ret, '\0', (size_t)length);
}
