/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/inside.h"
#include "shim/own_call.h"

/* A hook that is called from where it stands on the stack. */
__attribute__((noinline)) static bool asks(void)
{
	return inside_is(__builtin_frame_address(0));
}

/* The same, from further down, over memory that it has written all over. */
__attribute__((noinline)) static bool asks_from_deep_below(void)
{
	volatile char room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 'x';
	return asks() && room[0] == 'x';
}

__attribute__((noinline)) static bool resolves_and_asks(bool (*question)(void))
{
	bool answer;

	inside_enter(__builtin_frame_address(0));
	answer = question();
	inside_leave();
	return answer;
}

/* Leaves as siglongjmp() out of a resolver does: without a word. */
__attribute__((noinline)) static void resolves_and_is_left(void)
{
	inside_enter(__builtin_frame_address(0));
}

Test(inside, nobody_is_inside_at_first)
{
	cr_assert_not(asks());
}

Test(inside, what_the_resolver_calls_is_inside)
{
	cr_assert(resolves_and_asks(asks));
	cr_assert(resolves_and_asks(asks_from_deep_below));
}

Test(inside, a_call_after_the_resolver_is_not)
{
	resolves_and_asks(asks);

	cr_assert_not(asks());
	cr_assert_not(asks_from_deep_below());
}

Test(inside, a_mark_left_by_longjmp_is_stale_for_calls_from_further_up)
{
	resolves_and_is_left();

	cr_assert_not(inside_is(__builtin_frame_address(0)));
	inside_leave();
}

Test(inside, a_mark_left_by_longjmp_is_stale_once_its_frame_is_overwritten)
{
	resolves_and_is_left();

	cr_assert_not(asks_from_deep_below());
	inside_leave();
}

Test(inside, another_stack_is_not_inside)
{
	static char other_stack[64];

	inside_enter(__builtin_frame_address(0));

	cr_assert_not(inside_is(other_stack));
	cr_assert_not(inside_is((void *)((uintptr_t)__builtin_frame_address(0) - (64 << 20))));
	inside_leave();
}

/* What resolves_and_asks() does, on a stack of its own that is not there any more. */
Test(inside, a_mark_on_a_stack_that_is_gone_is_stale)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *stack = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	cr_assert_neq(stack, MAP_FAILED);
	inside_enter(stack + size);
	cr_assert(inside_is(stack + size / 2));
	munmap(stack + size, size);
	cr_assert_not(inside_is(stack + size / 2));
	/* Nor when something is there again. */
	cr_assert_eq(mmap(stack + size, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0), stack + size);
	cr_assert_not(inside_is(stack + size / 2));
}

Test(inside, a_handler_on_another_stack_leaves_the_mark_to_the_resolver)
{
	static char other_stack[64];

	inside_enter(__builtin_frame_address(0));
	cr_assert_not(inside_is(other_stack));
	cr_assert(asks());
	inside_leave();
}

Test(inside, a_thread_is_no_vfork_child_unless_marked)
{
	cr_assert_not(process_is_vfork_child());
	inside_vfork = INSIDE_VFORK;
	cr_assert(process_is_vfork_child());
	inside_vfork = INSIDE_NO_VFORK;
}

Test(inside, marked_a_process_is_no_vfork_child_if_it_is_the_parent)
{
	inside_vfork_pid = (uint32_t)getpid();
	inside_vfork = INSIDE_VFORK;
	cr_assert_not(process_is_vfork_child());
	inside_vfork = INSIDE_FILTERED_VFORK;
	cr_assert(process_is_vfork_child());
	inside_vfork = INSIDE_VFORK;
	own_calls_forbid();
	cr_assert(process_is_vfork_child());
	inside_vfork = INSIDE_NO_VFORK;
}
