/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>

#include "shim/vectors.h"

static char data[8];

Test(vectors, their_sizes_add_up)
{
	struct iovec vectors[] = { { data, 3 }, { NULL, 0 }, { data, 5 } };

	cr_assert_eq(vectors_size(vectors, 3), 8);
	cr_assert_eq(vectors_size(vectors, 1), 3);
}

Test(vectors, what_the_kernel_refuses_is_none)
{
	struct iovec low = { (void *)8, 1 };
	struct iovec high = { (void *)-8, 1 };
	struct iovec endless[] = { { data, SIZE_MAX / 2 }, { data, SIZE_MAX / 2 } };

	cr_assert_eq(vectors_size(&low, 1), 0);
	cr_assert_eq(vectors_size(&high, 1), 0);
	cr_assert_eq(vectors_size(endless, 2), 0);
}

Test(vectors, pointers_and_counts_that_cannot_be_are_not_read)
{
	cr_assert_eq(vectors_size(NULL, 1), 0);
	cr_assert_eq(vectors_size((struct iovec *)8, 1), 0);
	cr_assert_eq(vectors_size((struct iovec *)-4096, 1), 0);
	cr_assert_not(vectors_may_be_read((struct iovec *)data, 0));
	cr_assert_not(vectors_may_be_read((struct iovec *)data, UIO_MAXIOV + 1));
	cr_assert_not(vectors_may_be_read((struct iovec *)data, (size_t)-1));
	cr_assert(vectors_may_be_read((struct iovec *)data, UIO_MAXIOV));
}
