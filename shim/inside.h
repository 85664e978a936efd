/* SPDX-License-Identifier: MIT */
/*
 * "This thread is inside a real resolver call": what NSS modules do on the network from in there is
 * not the program's. The hook may be left by longjmp, so the mark is a stack address: a later call
 * from further up the stack finds it stale.
 */
#ifndef SHUNT_SHIM_INSIDE_H
#define SHUNT_SHIM_INSIDE_H

#include <stdbool.h>

void inside_enter(void *frame);
void inside_leave(void);

/* `frame` is __builtin_frame_address(0) of the asking hook. */
bool inside_is(void *frame);

#endif
