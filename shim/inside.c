/* SPDX-License-Identifier: MIT */
#include "shim/inside.h"

#include <stddef.h>
#include <stdint.h>

/* No resolver is this deep; further off is another stack, which may be gone. */
#define RESOLVER_STACK_BYTES (256 * 1024)

_Thread_local bool inside_vfork;

static _Thread_local void **inside_frame;
static _Thread_local void *inside_return;

/* A frame record is {caller's frame, return address} on x86-64 and aarch64. */
static void *frame_return(void *const *frame)
{
	return __atomic_load_n(&frame[1], __ATOMIC_RELAXED);
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

/* A stale mark stays: a signal handler on a stack of its own must not take it from the resolver. */
bool inside_is(void *frame)
{
	uintptr_t depth = (uintptr_t)inside_frame - (uintptr_t)frame;

	return inside_frame && depth != 0 && depth < RESOLVER_STACK_BYTES &&
			frame_return(inside_frame) == inside_return;
}
