/* SPDX-License-Identifier: MIT */
/* What close_range() and dup2() do to the table, for the hooks of their names and for syscall(). */
#ifndef SHUNT_SHIM_HOOK_LIFETIME_H
#define SHUNT_SHIM_HOOK_LIFETIME_H

#include <stdint.h>

/* Before the real call. */
void close_range_begins(unsigned int first, unsigned int last, int flags);

/* After the real call of dup2() or dup3(); taken: of gate_copy_begins(). Returns `result`. */
int copy_ended(int fd, int copy, uint32_t taken, int result);

/* After a real call that returned a descriptor which cannot connect, or -1. Returns it. */
int born_other(int fd);

#endif
