/* SPDX-License-Identifier: MIT */
/* What a process does to itself, for the hooks of that name and for syscall(). In a vfork child
 * these do nothing: it is the parent's memory. */
#ifndef SHUNT_SHIM_HOOK_PROCESS_H
#define SHUNT_SHIM_HOOK_PROCESS_H

/* Before the process ends. */
void process_ends(void);

/* Before what must not find a thread of ours: new namespaces, a filter. */
void process_becomes_single(void);

/* After a seccomp filter was set. */
void process_is_filtered(void);

#endif
