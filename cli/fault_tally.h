/* SPDX-License-Identifier: MIT */
/*
 * What fault rules do during a run, as the segment counts it: those that the run has, and those
 * that somebody adds by hand meanwhile.
 */
#ifndef SHUNT_CLI_FAULT_TALLY_H
#define SHUNT_CLI_FAULT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/fault_counts.h"
#include "core/config.h"
#include "core/fault_table.h"

/* Room for a line about all rules that there may be, and 64 characters more. */
#define FAULT_TALLY_SIZE (2 * FAULT_TABLE_SIZE * (RULE_NAME_SIZE + FAULT_COUNTS_SIZE + 24) + 64)

struct fault_tally {
	const struct config *config;
	bool is_last; /* nobody counts on when it ends */
	/* Set by fault_tally_begin(): */
	struct fault_table *table; /* NULL: nothing can be counted */
	struct fault_record *records[FAULT_TABLE_SIZE]; /* of config's rules; NULL: none was free */
	uint64_t keys[FAULT_TABLE_SIZE]; /* of the records, as long as they are the rules' */
	uint64_t began_ns;
	struct fault_view added[FAULT_TABLE_SIZE]; /* by hand, as it began; key 0: none was there */
};

/* Begins to count for the run of that number. False where that is required and cannot be, after a
 * complaint. */
bool fault_tally_begin(struct fault_tally *tally, uint64_t run, bool is_required);

struct fault_sum {
	uint64_t injected, unreported; /* of the run's own rules */
	uint64_t added; /* injected by those added by hand, in whichever process */
};

/* Ends it: each rule into `line`, with "; " between them. */
struct fault_sum fault_tally_end(const struct fault_tally *tally, char line[FAULT_TALLY_SIZE]);

#endif
