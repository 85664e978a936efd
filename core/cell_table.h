/* SPDX-License-Identifier: MIT */
/*
 * The cells of all targets, found by full key, shared between processes of which any may die at any
 * instruction. Lock-free, allocates nothing, makes no system call, async-signal-safe; any bit
 * pattern is a legal table.
 */
#ifndef SHUNT_CORE_CELL_TABLE_H
#define SHUNT_CORE_CELL_TABLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cell.h"

#define CELL_TABLE_SIZE 400
#define CELL_IDLE_NS 60000000000ull /* an unused cell may get another target after this */

struct cell_table {
	_Atomic uint64_t full_until_ns; /* no cell is free or idle: don't look again before */
	uint64_t reserved[7];
	/* One word per cell: state 2 | turn 14 | hash of the key 48. The turn grows with each
	 * claim, so that a late hand on an earlier claim is noticed. */
	_Atomic uint64_t index[CELL_TABLE_SIZE];
	struct cell cells[CELL_TABLE_SIZE];
};

static_assert(offsetof(struct cell_table, cells) == 3264, "layout is shared: bump SEGMENT_VERSION");

/* Fills every byte of *key. `name` and `host` are shortened to fit: whoever calls makes sure that
 * they do. `address` may be NULL. Lookups have neither address nor port. */
void cell_key_make(struct cell_key *key, enum cell_kind kind, const char *name, const char *host,
		const struct address *address, uint16_t port, const struct window_shape *window);

/* Hash of a key, never 0. */
uint64_t cell_key_hash(const struct cell_key *key);

/*
 * The cell of that key; claimed if there is none yet. Of processes that claim at once all get the
 * same cell, and one that dies half way blocks nobody. When no cell is free, one that nobody used
 * for CELL_IDLE_NS and its window is given to the new target: closed, empty, in a new epoch, so
 * that permits of the old target are late. Whoever keeps a pointer to a cell from call to call asks
 * cell_table_is() before the next. Open and forced circuits are never given away. NULL when all
 * cells are busy.
 */
struct cell *cell_table_get(struct cell_table *table, const struct cell_key *key, uint64_t hash,
		uint64_t now_ns);

/* Is the cell (still) the one of a key with that hash? */
bool cell_table_is(const struct cell_table *table, const struct cell *cell, uint64_t hash);

/* The index of a cell (CELL_TABLE_SIZE for a pointer to anything else), and back; NULL where out of
 * range or not live. */
uint32_t cell_table_index(const struct cell_table *table, const struct cell *cell);
struct cell *cell_table_at(struct cell_table *table, uint32_t index);

/* A cell's key, text terminated and printable, kind and family legal. False where out of range or
 * not live. */
bool cell_table_key(const struct cell_table *table, uint32_t index, struct cell_key *ret);

#endif
