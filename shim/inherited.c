/* SPDX-License-Identifier: MIT */
#include "shim/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shim/fd_table.h"
#include "shim/real.h"

static bool has_option(int fd, int option, int wanted)
{
	int value;
	socklen_t size = sizeof(value);

	return !real()->getsockopt(fd, SOL_SOCKET, option, &value, &size) && value == wanted;
}

static void tell(int fd)
{
	if (!has_option(fd, SO_TYPE, SOCK_STREAM) || has_option(fd, SO_ACCEPTCONN, 1))
		return;
	if (has_option(fd, SO_DOMAIN, AF_INET))
		fd_table_set(fd, FD_STREAM);
	else if (has_option(fd, SO_DOMAIN, AF_INET6))
		fd_table_set(fd, FD_STREAM6);
}

static void tell_each(const char *entries, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = (const void *)(entries + at);

		/* "." and ".." read as 0: asking once more does no harm. */
		tell(atoi(entry->d_name));
		at += entry->d_reclen;
	}
}

void inherited_tell(void)
{
	static _Alignas(struct dirent64) char entries[4096];
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t size;

	if (directory < 0)
		return;
	while ((size = getdents64(directory, entries, sizeof(entries))) > 0)
		tell_each(entries, (size_t)size);
	real()->close(directory);
}
