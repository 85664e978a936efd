/* SPDX-License-Identifier: MIT */
/* What the hooks of data share. */
#ifndef SHUNT_SHIM_HOOK_IO_H
#define SHUNT_SHIM_HOOK_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "shim/exchange.h"

/* The half of a hook that most calls do not take, kept out of the half that they do. */
#define GUARDED __attribute__((noinline)) static

/* Data that never passes through the program, or whose place is not known yet. */
static const struct bytes bytes_out_of_sight = { NULL, 0 };

/* No user memory is below the first page or in the upper half of the address space: what points
 * there gets its EFAULT from the kernel. */
static inline bool pointer_may_be_read(const void *pointer)
{
	return (uintptr_t)pointer >= 4096 && (intptr_t)pointer > 0;
}

static inline bool vectors_may_be_read(const struct iovec *vectors, size_t count)
{
	return count - 1 < UIO_MAXIOV && pointer_may_be_read(vectors);
}

/* How many bytes; 0 for vectors that hold none or that the kernel refuses. */
static inline size_t vectors_size(const struct iovec *vectors, size_t count)
{
	size_t size = 0;

	if (!vectors_may_be_read(vectors, count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (vectors[i].iov_len && !pointer_may_be_read(vectors[i].iov_base))
			return 0;
		size += vectors[i].iov_len;
	}
	return (ssize_t)size < 0 ? 0 : size;
}

#endif
