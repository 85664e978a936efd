/* SPDX-License-Identifier: MIT */
#include "shim/reserve.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void limit(int resource, rlim_t bytes)
{
	cr_assert_not(setrlimit(resource, &(struct rlimit){ bytes, RLIM_INFINITY }));
}

Test(reserve, is_zero_and_can_be_written)
{
	unsigned char *memory = reserve(1 << 20);

	cr_assert(memory);
	cr_expect_eq(memory[0] | memory[(1 << 20) - 1], 0);
	memory[0] = memory[(1 << 20) - 1] = 1;
	munmap(memory, 1 << 20);
}

Test(reserve, without_room_is_null_and_leaves_errno_alone)
{
	errno = EDOM;
	cr_expect_null(reserve(SIZE_MAX / 2));
	cr_expect_eq(errno, EDOM);
}

Test(reserve_affordable, without_a_limit_is_all)
{
	cr_expect_eq(reserve_affordable(1000000, 1000, 10), 1000000);
}

Test(reserve_affordable, of_limited_address_space_is_a_share)
{
	limit(RLIMIT_AS, 64ull << 30);
	cr_expect_eq(reserve_affordable(1u << 30, 1024, 10), 1u << 20);
}

Test(reserve_affordable, of_limited_data_is_a_share)
{
	limit(RLIMIT_DATA, 64ull << 30);
	cr_expect_eq(reserve_affordable(1u << 30, 1024, 10), 1u << 20);
}

Test(reserve_affordable, is_never_less_than_the_least)
{
	limit(RLIMIT_DATA, 1ull << 30);
	cr_expect_eq(reserve_affordable(1000000, 1ull << 30, 10), 10);
}
