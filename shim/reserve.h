/* SPDX-License-Identifier: MIT */
/* Memory that is the process's own, zero, and costs nothing until it is touched. */
#ifndef SHUNT_SHIM_RESERVE_H
#define SHUNT_SHIM_RESERVE_H

#include <stddef.h>
#include <stdint.h>

/* NULL without room. Never given back by itself; one system call, errno is kept. */
void *reserve(size_t size);

/* How many things of `size` bytes, of the `wanted`, a process can afford; not fewer than `least`.
 * Where memory is limited (RLIMIT_AS, RLIMIT_DATA) the program counts on nearly all of it: a
 * sixty-fourth of that. */
uint32_t reserve_affordable(uint32_t wanted, size_t size, uint32_t least);

#endif
