/* SPDX-License-Identifier: MIT */
/* What the kernel is asked to read or write, looked at without falling over what it will refuse. */
#ifndef SHUNT_SHIM_VECTORS_H
#define SHUNT_SHIM_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "shim/exchange.h"

/* Data that never passes through the program, or whose place is not known yet. */
static const struct bytes bytes_out_of_sight = { NULL, 0 };

/* No user memory is below the first page or in the upper half of the address space: what points
 * there gets its EFAULT from the kernel. */
static inline bool pointer_may_be_read(const void *pointer)
{
	return (uintptr_t)pointer >= 4096 && (intptr_t)pointer > 0;
}

/* Are they as many as the kernel takes, and is there at least one? */
static inline bool vectors_may_be_read(const struct iovec *vectors, size_t count)
{
	return count - 1 < UIO_MAXIOV && pointer_may_be_read(vectors);
}

/* How many bytes; 0 for vectors that hold none or that the kernel refuses. */
size_t vectors_size(const struct iovec *vectors, size_t count);

#endif
