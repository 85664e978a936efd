/* SPDX-License-Identifier: MIT */
#include "shim/vectors.h"

#include <sys/types.h>

size_t vectors_size(const struct iovec *vectors, size_t count)
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
