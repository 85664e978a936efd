/* SPDX-License-Identifier: MIT */
/*
 * Memory for one wait that is too large for the stack: a few areas, kept and used again. Whoever is
 * cancelled in a wait takes his area with him until he is gone. Async-signal-safe; no allocation
 * once an area is large enough.
 */
#ifndef SHUNT_SHIM_SCRATCH_H
#define SHUNT_SHIM_SCRATCH_H

#include <stddef.h>

/* NULL: all are in use, or there is no memory. */
void *scratch_take(size_t size);
void scratch_give(void *memory);

#endif
