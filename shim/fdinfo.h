/* SPDX-License-Identifier: MIT */
/* What the kernel says of an epoll set. Async-signal-safe; makes system calls, keeps errno. */
#ifndef SHUNT_SHIM_FDINFO_H
#define SHUNT_SHIM_FDINFO_H

#include <stdint.h>

/* Calls `each` for all that is registered in the set, as far as it can be read. Has a descriptor
 * for that moment, which closes over exec. */
void fdinfo_each(int set, void (*each)(int set, int fd, uint32_t events, uint64_t data));

#endif
