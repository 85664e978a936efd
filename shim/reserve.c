/* SPDX-License-Identifier: MIT */
#include "shim/reserve.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SHARE_OF_LIMIT 64

void *reserve(size_t size)
{
	int error = errno;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	errno = error;
	return memory == MAP_FAILED ? NULL : memory;
}

static rlim_t limit_of(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) ? RLIM_INFINITY : limit.rlim_cur;
}

uint32_t reserve_affordable(uint32_t wanted, size_t size, uint32_t least)
{
	rlim_t space = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
	rlim_t count = (space < data ? space : data) / SHARE_OF_LIMIT / size;

	if (count >= wanted)
		return wanted;
	return count > least ? (uint32_t)count : least;
}
