/* SPDX-License-Identifier: MIT */
/* What a process does to itself, for the hooks of that name and for syscall(). In a vfork child
 * these do nothing: it is the parent's memory. */
#ifndef SHUNT_SHIM_HOOK_PROCESS_H
#define SHUNT_SHIM_HOOK_PROCESS_H

#include <stdbool.h>

/* A process was made whose memory is its own, and no pthread_atfork handler ran. In both; `pid` is
 * 0 in the child, which libc may go on calling by its parent's number. */
void process_has_forked(int pid);

/* Before the process ends. */
void process_ends(void);

/* Around what must not find a thread of ours: new namespaces, a filter. Each begin needs an end. */
void process_alone_begins(void);
void process_alone_ends(void);

/* Around what may forbid the processor's time stamp counter: before it, and, where it failed, the
 * reverse. */
void process_avoids_counter(bool avoids);

/* A thread has gone to other namespaces, before process_alone_ends(). */
void process_has_moved(void);

/* Around what sets a seccomp filter, which may hold for other threads before it returns; inside the
 * process_alone_*() pair. */
void process_filter_begins(void);
void process_filter_ended(bool is_set);

#endif
