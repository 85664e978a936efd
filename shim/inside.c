/* SPDX-License-Identifier: MIT */
#include "shim/inside.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "shim/intact.h"
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

/* A mark that is merely elsewhere stays: a signal handler on a stack of its own must not take it
 * from the resolver. */
bool inside_is(void *frame)
{
	uintptr_t depth = (uintptr_t)inside_frame - (uintptr_t)frame;

	if (!inside_frame || depth == 0 || depth >= RESOLVER_STACK_BYTES)
		return false;
	if (is_intact(&inside_frame[1], inside_return))
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
