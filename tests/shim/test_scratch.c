/* SPDX-License-Identifier: MIT */
#include <alloca.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/scratch.h"

#define MORE_THAN_THERE_ARE 200
#define SIZE		    8192

TestSuite(scratch, .timeout = 60);

Test(scratch, what_was_given_back_is_used_again)
{
	struct scratch scratch, again;
	void *first = scratch_take(&scratch, SIZE);

	cr_assert_not_null(first);
	memset(first, 1, SIZE);
	scratch_give(&scratch);
	cr_assert_eq(scratch_take(&again, SIZE), first);
}

Test(scratch, each_who_has_one_has_his_own)
{
	struct scratch scratches[2];
	void *first = scratch_take(&scratches[0], SIZE);
	void *second = scratch_take(&scratches[1], 2 * SIZE);

	cr_assert_not_null(second);
	cr_assert_neq(first, second);
	memset(first, 1, SIZE);
	memset(second, 2, 2 * SIZE);
	cr_assert_eq(((char *)first)[SIZE - 1], 1);
}

static int take_all(void)
{
	struct scratch scratches[MORE_THAN_THERE_ARE];
	int count = 0;

	while (count < MORE_THAN_THERE_ARE && scratch_take(&scratches[count], SIZE))
		count++;
	return count;
}

Test(scratch, there_is_an_end_to_them)
{
	cr_assert_lt(take_all(), MORE_THAN_THERE_ARE);
}

static jmp_buf jump;

__attribute__((noinline)) static void take_and_leave(void)
{
	struct scratch scratch;

	cr_assert_not_null(scratch_take(&scratch, SIZE));
	longjmp(jump, 1);
}

/* As a signal handler may, from so far down. */
__attribute__((noinline)) static void take_deep_and_leave(size_t depth)
{
	volatile char *frame = alloca(depth);

	frame[0] = 0;
	take_and_leave();
}

__attribute__((noinline)) static void overwrite_stack(void)
{
	volatile char frame[16384];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = (char)0xa5;
}

Test(scratch, what_was_left_by_a_jump_comes_back)
{
	struct scratch kept, last;
	void *memory = scratch_take(&kept, SIZE);

	for (volatile int i = 0; i < MORE_THAN_THERE_ARE; i++) {
		if (!setjmp(jump))
			take_and_leave();
	}
	for (volatile int i = 0; i < MORE_THAN_THERE_ARE; i++) {
		if (!setjmp(jump))
			take_deep_and_leave(64 * (size_t)(i % 20 + 1));
		overwrite_stack();
	}
	/* And what was not is still its owner's. */
	cr_assert_neq(scratch_take(&last, SIZE), memory);
}

static void *in_handler;

static void take_in_handler(int signal)
{
	struct scratch scratch;

	(void)signal;
	in_handler = scratch_take(&scratch, SIZE);
	scratch_give(&scratch);
}

/* Where each stands says nothing about who is further in. */
Test(scratch, a_handler_on_a_stack_of_its_own_takes_nothing_away)
{
	static char low[65536];
	stack_t stack = { .ss_sp = low, .ss_size = sizeof(low) };
	struct sigaction action = { .sa_handler = take_in_handler, .sa_flags = SA_ONSTACK };
	struct scratch scratch;
	void *memory = scratch_take(&scratch, SIZE);

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(sigaltstack(&stack, NULL), 0);
		cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
		raise(SIGUSR1);
		cr_assert_not_null(in_handler);
		cr_assert_neq(in_handler, memory);
		/* Above the other one, too. */
		stack.ss_sp = mmap(NULL, sizeof(low), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
}

static void *takes_all(void *unused)
{
	(void)unused;
	take_all();
	return NULL;
}

Test(scratch, what_a_thread_took_with_it_comes_back)
{
	struct scratch scratch;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, takes_all, NULL), 0);
	pthread_join(thread, NULL);
	/* libc counts a thread as ended a moment before the kernel does. */
	while (!scratch_take(&scratch, SIZE))
		;
}
