/* SPDX-License-Identifier: MIT */
/*
 * The lookups that are open, of all threads: at most one a thread, at most 256 in all; of more, the
 * oldest is settled. Each is reported exactly once, whoever ends it: its own thread, a later lookup
 * of that thread, the end of that thread, or exit. Lock-free, allocates nothing of its own; call
 * only while runtime_is_judging().
 */
#ifndef SHUNT_SHIM_OPEN_LOOKUP_H
#define SHUNT_SHIM_OPEN_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/circuit.h"
#include "core/config.h"
#include "core/outcome.h"

/* At start only, once: from now on a thread that ends (cancelled in a lookup, say) settles its own
 * by open_lookup_leave(). Takes one of the process's thread keys; without one, nothing changes. */
void open_lookup_start(void);

/* The calling thread's, which had none open. False where no slot could be had: the permit is still
 * the caller's. */
bool open_lookup_begin(const struct rule *rule, const struct cell *cell, struct permit permit,
		uint64_t now_ns);

/* The rule of the calling thread's open lookup, or NULL: none is open. */
const struct rule *open_lookup_rule(void);

/* Reports the calling thread's open lookup, if there is one. */
void open_lookup_end(enum outcome outcome);

/* Ends it without a report: the permit is the caller's again. All zero where none was open. */
struct permit open_lookup_take(void);

/* For how long it has been open. */
uint64_t open_lookup_age_ns(void);

/* Nobody will say how the calling thread's ended: timeout where it lasted `abandon`, otherwise
 * cancelled. */
void open_lookup_leave(void);

/* The same for all threads. */
void open_lookup_leave_all(void);

/* Drops all without a word. */
void open_lookup_forget(void);

#endif
