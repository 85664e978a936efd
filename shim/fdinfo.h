/* SPDX-License-Identifier: MIT */
/* What the kernel says of an epoll set. Async-signal-safe; makes system calls, keeps errno. */
#ifndef SHUNT_SHIM_FDINFO_H
#define SHUNT_SHIM_FDINFO_H

#include <stdbool.h>
#include <stdint.h>

/* Calls `each` for all that is registered in the set. False: it cannot be read (no /proc, no
 * descriptor left). Has a descriptor for that moment, which closes over exec. */
bool fdinfo_each(int set, void (*each)(int set, int fd, uint32_t events, uint64_t data));

#endif
