/* SPDX-License-Identifier: MIT */
/*
 * Who holds something in shared memory: each process takes a seat, one word of generation, start
 * time and pid. What is held names the seat and its generation, so that it is void as soon as the
 * seat is another's, and can be taken back when the process is dead. Lock-free, async-signal-safe,
 * makes no system call; any bit pattern is a legal table.
 */
#ifndef SHUNT_CORE_SEAT_H
#define SHUNT_CORE_SEAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEAT_COUNT 512

struct seat_table {
	_Atomic uint64_t seats[SEAT_COUNT]; /* generation 20 | start 22 | pid 22; pid 0: free */
};

/* A process: its pid, and when it started, in any unit that tells two of one pid apart. */
struct seat_owner {
	uint32_t pid;
	uint32_t start; /* 0: not known */
};

/* Generation above, index + 1 below; 0: no seat. */
typedef uint32_t seat_t;

/* Does that process live? Only the low 22 bits of `start` are kept: compare those. */
typedef bool seat_is_alive(struct seat_owner owner);

#define SEAT_START_BITS 22

/* A seat, 0 where all are taken by the living. Threads that come at once get one each. */
seat_t seat_take(struct seat_table *table, struct seat_owner owner, seat_is_alive *is_alive);

/* Has any process of that pid a seat? */
bool seat_is_known(const struct seat_table *table, uint32_t pid);

/* What the process held before an exec, which keeps pid and start, is void from now on. For
 * start-up, before it takes a seat again. */
void seat_drop(struct seat_table *table, struct seat_owner owner);

/* The process ends: whatever it still holds is void. */
void seat_leave(struct seat_table *table, seat_t seat);

/* Is it still the seat that it was? */
bool seat_is_taken(const struct seat_table *table, seat_t seat);

/* As seat_is_taken(), and asks for the process too; the seat of a dead one is free from now on. */
bool seat_is_held(struct seat_table *table, seat_t seat, seat_is_alive *is_alive);

#endif
