/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a user share about fault rules, in the segment: when a rule began, its
 * numbers, what it did; and the rules that were added by hand. Fixed widths, no pointers; whatever
 * is read from it is clamped. Lock-free, async-signal-safe.
 */
#ifndef SHUNT_CORE_FAULT_TABLE_H
#define SHUNT_CORE_FAULT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/fault_record.h"

#define FAULT_TABLE_SIZE 32
/* Rules that were added by hand end after this, unless said otherwise. */
#define FAULT_ADDED_FOR_NS 60000000000ull

struct fault_table {
	_Atomic uint64_t generation; /* changes with every rule added or cleared by hand */
	uint64_t reserved[7];
	struct fault_record records[FAULT_TABLE_SIZE];
};

/*
 * The record of a rule, made if missing. `run` tells runs of `shunt run` apart (0: none): each
 * begins with number 1. One that was forgotten begins anew. Where all are taken, one that was
 * forgotten, or is of an added rule that ended so long ago, is given away, else that of an added
 * rule that has just ended, else the environment's that was unused longest; whoever has it sees it
 * by its key. NULL where all are of rules added by hand that go on, or in use at now_ns or later.
 * For start-up.
 */
struct fault_record *fault_table_claim(struct fault_table *table, const struct fault *fault,
		const char *text, uint64_t run, uint64_t now_ns);

/* By hand: adds a rule that fault_parse() found good, until ends_ns, in place of an added one of
 * that name. False where no record is to be had (fault_table_claim()) or the text is too long. */
bool fault_table_add(struct fault_table *table, const struct fault *fault, const char *text,
		uint64_t ends_ns, uint64_t now_ns);

/* By hand: ends the added rules of that name, or all with NULL. How many had not ended yet. */
uint32_t fault_table_clear(struct fault_table *table, const char *name, uint64_t now_ns);

/* The record at an index below FAULT_TABLE_SIZE, or NULL if it is no longer the one that a view
 * with that key was of. */
struct fault_record *fault_table_at(struct fault_table *table, uint32_t index, uint64_t key);

/* A copy; text terminated and printable. */
struct fault_view {
	char name[RULE_NAME_SIZE];
	char text[FAULT_TEXT_SIZE];
	uint64_t key, began_ns, ends_ns, connections;
	struct fault_counts counts;
	bool is_added; /* by hand */
	bool is_over;  /* added, and its time has passed */
};

/* False where index is out of range or nothing is there. */
bool fault_table_read(const struct fault_table *table, uint32_t index, uint64_t now_ns,
		struct fault_view *ret);

#endif
