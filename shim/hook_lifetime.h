/* SPDX-License-Identifier: MIT */
/* What close_range() and dup2() do to the table, for the hooks of their names and for syscall(). */
#ifndef SHUNT_SHIM_HOOK_LIFETIME_H
#define SHUNT_SHIM_HOOK_LIFETIME_H

/* Before the real call. */
void close_range_begins(unsigned int first, unsigned int last, int flags);

/* Before the real call of dup2() (flags 0) and dup3(). */
void copy_begins(int fd, int copy, int flags);

/* After the real call of dup, dup2, dup3 or F_DUPFD, which returned `copy` or -1. Returns it. */
int copy_ended(int fd, int copy);

/* After a real call that returned a descriptor which cannot connect, or -1. Returns it. */
int born_other(int fd);

#endif
