/* SPDX-License-Identifier: MIT */
#include "shim/inside.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "shim/own_call.h"
#include "shim/raw.h"

/* No resolver is this deep; further off is another stack, which may be gone. */
#define RESOLVER_STACK_BYTES (256 * 1024)
/* The least that the kernel puts on the stack before a handler is 1080 on x86-64. */
#define SIGNAL_FRAME_BYTES 1024

static _Thread_local void **inside_frame;
/* The half of it that the kernel compares. */
static _Thread_local uint32_t inside_return;

_Thread_local uint32_t inside_vfork_frame;
_Thread_local uint8_t inside_vfork;
_Atomic uint32_t inside_vfork_pid;

/* A frame record is {caller's frame, return address} on x86-64 and aarch64. */
static uint32_t frame_return(void *const *frame)
{
	return (uint32_t)(uintptr_t)__atomic_load_n(&frame[1], __ATOMIC_RELAXED);
}

void inside_enter(void *frame)
{
	inside_return = frame_return(frame);
	inside_frame = frame;
}

void inside_leave(void)
{
	inside_frame = NULL;
}

/*
 * Does the frame still hold its return address? The kernel compares, as the memory may not be there
 * any more; nothing is woken or moved. True where it may not be asked.
 */
static bool is_frame_intact(void)
{
	static uint32_t nobody;
	long result;

	if (!own_calls_begin())
		return true;
	result = raw_syscall(SYS_futex, (long)&inside_frame[1], FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
			(long)&nobody, (long)inside_return);
	own_calls_end();
	return result != -EAGAIN && result != -EFAULT;
}

/* A mark that is merely elsewhere stays: a signal handler on a stack of its own must not take it
 * from the resolver. */
bool inside_is(void *frame)
{
	uintptr_t depth = (uintptr_t)inside_frame - (uintptr_t)frame;

	if (!inside_frame || depth == 0 || depth >= RESOLVER_STACK_BYTES)
		return false;
	if (is_frame_intact())
		return true;
	inside_frame = NULL;
	return false;
}

/* It has a number of its own, while all else is its parent's. */
bool inside_vfork_is_child(void)
{
	uint32_t here = (uint32_t)(uintptr_t)__builtin_frame_address(0);
	uint32_t pid = 0;

	if (inside_vfork_frame - here < SIGNAL_FRAME_BYTES)
		return true;
	if (inside_vfork != INSIDE_FILTERED_VFORK && own_calls_begin()) {
		pid = (uint32_t)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
		own_calls_end();
	}
	return !pid || pid != atomic_load_explicit(&inside_vfork_pid, memory_order_relaxed);
}
