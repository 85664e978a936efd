/* SPDX-License-Identifier: MIT */
/* A mark on a stack that a longjmp may have left behind. */
#ifndef SHUNT_SHIM_INTACT_H
#define SHUNT_SHIM_INTACT_H

#include <stdbool.h>
#include <stdint.h>

/* Does memory still hold this? It need not be there any more, so it is the kernel that looks. True
 * where it may not be asked. Async-signal-safe, keeps errno. */
bool is_intact(const void *word, uint32_t value);

#endif
