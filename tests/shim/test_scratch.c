/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "shim/scratch.h"

#define MORE_THAN_THERE_ARE 200
#define SIZE		    8192

TestSuite(scratch, .timeout = 60);

Test(scratch, what_was_given_back_is_used_again)
{
	void *first = scratch_take(SIZE);

	cr_assert_not_null(first);
	memset(first, 1, SIZE);
	scratch_give(first);
	cr_assert_eq(scratch_take(SIZE), first);
}

Test(scratch, each_who_has_one_has_his_own)
{
	void *first = scratch_take(SIZE), *second = scratch_take(2 * SIZE);

	cr_assert_not_null(second);
	cr_assert_neq(first, second);
	memset(first, 1, SIZE);
	memset(second, 2, 2 * SIZE);
	cr_assert_eq(((char *)first)[SIZE - 1], 1);
}

static int take_all(void)
{
	int count = 0;

	while (count < MORE_THAN_THERE_ARE && scratch_take(SIZE))
		count++;
	return count;
}

Test(scratch, there_is_an_end_to_them)
{
	cr_assert_lt(take_all(), MORE_THAN_THERE_ARE);
}

static void *takes_all(void *unused)
{
	(void)unused;
	take_all();
	return NULL;
}

Test(scratch, what_a_thread_took_with_it_comes_back)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, takes_all, NULL), 0);
	pthread_join(thread, NULL);
	/* libc counts a thread as ended a moment before the kernel does. */
	while (!scratch_take(SIZE))
		;
}
