/* SPDX-License-Identifier: MIT */
/*
 * Address -> the name it was resolved from. A bounded table: 4,096 addresses, 2,048 names; the
 * oldest entry goes. Lock-free, allocates nothing once started, async-signal-safe; a reader never
 * sees half an entry.
 *
 * Up to four names may share an address: the calling thread's own last lookup decides, otherwise
 * the last writer. A name that no rule is decided by is remembered only for addresses already
 * known, so that it hides the ruled name there.
 */
#ifndef SHUNT_SHIM_NAMES_H
#define SHUNT_SHIM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target.h"

/* Makes room for them; until then nothing is learnt. False without memory. Once or more, by any
 * thread. */
bool names_start(void);

/* The calling thread looked up `host` (normalised). Once per lookup, before names_learn() of its
 * addresses. */
void names_looked_up(const char *host);

/* `host` is normalised. `is_ruled`: some rule is decided by this name. */
void names_learn(const char *host, const struct address *address, bool is_ruled);

/* Copies the name into ret (HOST_SIZE). False, ret "" where none is known. */
bool names_find(const struct address *address, char *ret);

#endif
