/* SPDX-License-Identifier: MIT */
/*
 * Where a thread is that must not be judged.
 *
 * "This thread is inside a real resolver call": what NSS modules do on the network from in there is
 * not the program's. The hook may be left by longjmp, so the mark is a stack frame: it is stale for
 * a later call from further up the stack, and for one from further down once something else has
 * overwritten the frame.
 *
 * "This is a vfork child": it shares its parent's memory, so nothing of ours may change.
 */
#ifndef SHUNT_SHIM_INSIDE_H
#define SHUNT_SHIM_INSIDE_H

#include <stdbool.h>

/* `frame` is __builtin_frame_address(0) of the hook that makes the resolver call. */
void inside_enter(void *frame);
void inside_leave(void);

/* `frame` is __builtin_frame_address(0) of the asking hook. */
bool inside_is(void *frame);

extern _Thread_local bool inside_vfork __attribute__((visibility("hidden")));

static inline bool process_is_vfork_child(void)
{
	return inside_vfork;
}

#endif
