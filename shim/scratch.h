/* SPDX-License-Identifier: MIT */
/*
 * Memory for one wait that is too large for the stack: a few areas, kept and used again. A wait may
 * be left by longjmp, so who takes an area leaves a mark on its own stack: once that is
 * overwritten, or another stands in its place, the area is free again. And so it is once its thread
 * is gone.
 * Async-signal-safe; no allocation once an area is large enough.
 */
#ifndef SHUNT_SHIM_SCRATCH_H
#define SHUNT_SHIM_SCRATCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Stands in the frame of the function that takes and gives. */
struct scratch {
	void *memory;
	_Atomic uint32_t token;
};

/* NULL: all are in use, or there is no memory. */
void *scratch_take(struct scratch *scratch, size_t size);
void scratch_give(struct scratch *scratch);

#endif
