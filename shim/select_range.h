/* SPDX-License-Identifier: MIT */
/*
 * How far the kernel looks into the sets of select(): no further than the table of descriptors that
 * the process has reaches, whatever the program says. What stands behind may be something else of
 * the program's, or nothing at all, and only the kernel knows. Async-signal-safe; keeps errno.
 */
#ifndef SHUNT_SHIM_SELECT_RANGE_H
#define SHUNT_SHIM_SELECT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#define SELECT_WORD_BITS 64

/* Reserves memory. False without it. */
bool select_range_start(void);

/* Of so many words of a set, those that the kernel reads and writes. May make system calls. False:
 * it may not be asked. */
bool select_range(uint32_t wanted, uint32_t *ret_words);

/* In a forked child: its table is a new one, as large as it needs to be. */
void select_range_forked(void);

#endif
