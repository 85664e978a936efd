/* SPDX-License-Identifier: MIT */
/*
 * The shared segment: make, attach, check; find or claim a target's cell. A file format: fixed
 * widths, asserted layout, a version, made complete before anyone sees it (docs/BEHAVIOUR.md
 * section 4).
 */
#ifndef SHUNT_CORE_SEGMENT_H
#define SHUNT_CORE_SEGMENT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/cell_table.h"
#include "core/event.h"
#include "core/fault_table.h"
#include "core/place.h"
#include "core/seat.h"

#define SEGMENT_VERSION 3
#define SEGMENT_CELLS CELL_TABLE_SIZE
#define SEGMENT_RULES 128
#define SEGMENT_PATH_SIZE 256

/* Why a connection's `timeout`, or a lookup's, does not bound all that it should. */
enum unenforced {
	UNENFORCED_NO_THREAD, /* no timer thread may run: blocking calls alone are bounded */
	UNENFORCED_FILTER,    /* a seccomp filter was seen: nothing is */
	UNENFORCED_LOOKUP,    /* the thread that wants to know must ask itself */
	UNENFORCED_COUNT
};

/* Which rules the user's processes have, whether they ever matched, or what is wrong with them. */
struct segment_rule {
	_Atomic uint64_t hash; /* of name; 0: free, and so is everything after it in probe order */
	_Atomic uint64_t matched;
	char name[CELL_NAME_SIZE];
	char error[160]; /* "" for a good rule */
	_Atomic uint32_t unenforced[UNENFORCED_COUNT]; /* connections, lookups */
	uint32_t reserved;
};

static_assert(sizeof(struct segment_rule) == 256, "rule layout is shared: bump SEGMENT_VERSION");

struct segment_header {
	char magic[8];
	uint32_t version;
	uint32_t size;
	uint32_t cells;
	uint32_t cell_size;
	_Atomic uint64_t overflow; /* calls whose target found no cell */
	_Atomic uint64_t filtered; /* processes that a seccomp filter was seen in */
	_Atomic uint64_t unseated; /* processes that found no seat */
	uint64_t reserved[26];
};

static_assert(sizeof(struct segment_header) == 256,
		"header layout is shared: bump SEGMENT_VERSION");

struct segment {
	struct segment_header header;
	struct segment_rule rules[SEGMENT_RULES];
	struct event_ring events;
	struct cell_table table;
	struct seat_table seats;
	struct place_table places;
	struct fault_table faults;
};

static_assert(sizeof(struct segment) <= 1048576, "a segment is at most 1 MiB");

/* Where this process's shared state lives by default: "/dev/shm/shunt-<euid>-<pid namespace>-v3".
 * False if it can't be told (no /proc). Makes system calls. */
bool segment_default_path(char *ret, size_t size);

/* The same for another process of that effective user, as it would tell. */
bool segment_default_path_of(uint32_t pid, uint32_t user, char *ret, size_t size);

/*
 * Attaches the segment at `path` (NULL: the default), makes it first where it is missing and `make`
 * is set. Returns a mapping that stays until segment_close(); keeps no descriptor, touches none of
 * 0 to 2. NULL with *ret_why (static text: "its owner is another user", ...) otherwise; a refused
 * file is never written to. For start-up and the command, not for hooks.
 */
struct segment *segment_open(const char *path, bool make, const char **ret_why);

/* A segment for this process and its forked children alone. NULL without memory. */
struct segment *segment_open_private(void);

void segment_close(struct segment *segment);

/* Zeroed memory of sizeof(struct segment) becomes a valid segment. */
void segment_format(struct segment *segment);

/* As cell_table_get() and its siblings; segment_cell() counts `overflow` where it returns NULL. */
struct cell *segment_cell(struct segment *segment, const struct cell_key *key, uint64_t hash,
		uint64_t now_ns);
bool segment_cell_is(const struct segment *segment, const struct cell *cell, uint64_t hash);
uint32_t segment_cell_index(const struct segment *segment, const struct cell *cell);
struct cell *segment_cell_at(struct segment *segment, uint32_t index);

/* The record of a rule of that name, made if missing; `error` NULL for a good rule: clears what was
 * there. NULL when full. For start-up. */
struct segment_rule *segment_rule(struct segment *segment, const char *name, const char *error);

/* A copy of a record; text terminated and printable. */
struct segment_rule_view {
	char name[CELL_NAME_SIZE];
	char error[160];
	uint64_t matched;
	uint32_t unenforced[UNENFORCED_COUNT];
};

/* False where index is out of range or no rule. */
bool segment_rule_read(const struct segment *segment, uint32_t index,
		struct segment_rule_view *ret);

#endif
