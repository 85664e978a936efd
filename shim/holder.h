/* SPDX-License-Identifier: MIT */
/*
 * This process as a holder of places in the bulkheads of the segment. Only rules that limit
 * something come here, so it may make system calls of its own (who lives, wait, wake), none of them
 * under a seccomp filter. Async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_HOLDER_H
#define SHUNT_SHIM_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bulkhead.h"
#include "core/cell.h"

/* At start, when the segment is there: what this process held before an exec is void. Makes system
 * calls where it held something. */
void holder_start(void);

/* Ready to hold places: the process's seat is taken at the first need, and again in a forked child.
 * Without one (the table is full, or a filter forbids to look) nothing is limited. A full table is
 * counted for status, and looked at again five times a second. */
struct holder *holder_ready(void);

/* Frees what dead processes hold there; asks at most five times a second, of each bulkhead. True
 * where it did free something. */
bool holder_reclaim(const struct bulkhead *bulkhead, uint64_t now_ns);

/* Gives a place of that cell back, and wakes those who wait for one. 0 is nothing. */
void holder_give(struct cell *cell, place_t place);

/* Announces a wait for a place of that cell: take it before the last look. */
uint32_t holder_wait_begins(struct cell *cell);

enum holder_wait {
	HOLDER_WAITED,
	HOLDER_INTERRUPTED, /* by a handler that makes system calls fail with EINTR */
	HOLDER_FORBIDDEN    /* nobody may wait (any more) */
};

/* Until a place was given back since, `until_ns` on CLOCK_MONOTONIC at the latest, or sooner. */
enum holder_wait holder_wait(struct cell *cell, uint32_t since, uint64_t until_ns);

/* In a forked child: what the parent holds stays the parent's. */
void holder_forked(void);

/* The process ends: all that it holds is void. */
void holder_leave(void);

#endif
