/* SPDX-License-Identifier: MIT */
/* A preload of the kind that colours what goes to standard error: it wraps write(). */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*next)(int fd, const void *data, size_t size);
	ssize_t result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "write");
	if (fd != STDERR_FILENO || !size)
		return next(fd, data, size);
	next(fd, "<", 1);
	result = next(fd, data, size);
	next(fd, ">", 1);
	return result;
}
