/* SPDX-License-Identifier: MIT */
/*
 * Where a thread is that must not be judged.
 *
 * "This thread is inside a real resolver call": what NSS modules do on the network from in there is
 * not the program's. The hook may be left by longjmp, so the mark is a stack frame: it is stale for
 * a later call from further up the stack, and for one from further down once something else has
 * overwritten the frame. That stack may be gone by then, so it is the kernel that looks.
 *
 * "This is a vfork child": it shares its parent's memory, so nothing of ours may change.
 */
#ifndef SHUNT_SHIM_INSIDE_H
#define SHUNT_SHIM_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* `frame` is __builtin_frame_address(0) of the hook that makes the resolver call. */
void inside_enter(void *frame);
void inside_leave(void);

/* `frame` is __builtin_frame_address(0) of the asking hook. */
bool inside_is(void *frame);

enum inside_vfork {
	INSIDE_NO_VFORK,
	INSIDE_VFORK,
	INSIDE_FILTERED_VFORK, /* the child sets a filter: no call tells it from its parent */
};

/* The mark, one of them. */
extern _Thread_local uint8_t inside_vfork __attribute__((visibility("hidden")));

/* Where on the stack it was called: a hook that is nearer than a signal frame is long is certainly
 * the child's, and no system call is made to find out. The lower half tells that as well. */
extern _Thread_local uint32_t inside_vfork_frame __attribute__((visibility("hidden")));
/* The parent's; all threads that call vfork are of one process. */
extern _Atomic uint32_t inside_vfork_pid __attribute__((visibility("hidden")));

/* The mark is set: is it the child, or a signal handler in the parent before that took it off? */
bool inside_vfork_is_child(void);

static inline bool process_is_vfork_child(void)
{
	return inside_vfork && inside_vfork_is_child();
}

#endif
