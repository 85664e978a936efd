/* SPDX-License-Identifier: MIT */
/* A copy of a cell that is consistent enough to print: every value clamped, text terminated. */
#ifndef SHUNT_CORE_SNAPSHOT_H
#define SHUNT_CORE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/segment.h"

struct cell_snapshot {
	struct cell_key key; /* strings terminated and printable */
	enum circuit_state state; /* effective: a force shows here */
	enum force force;
	uint64_t requests, errors;
	uint32_t error_percent;
	bool has_retry;
	uint64_t retry_in_ms; /* open only; 0 when the sleep window is over */
	uint64_t in_flight;
	uint32_t concurrency; /* the limit by hand, CELL_UNLIMITED: off by hand; 0: as rules say */
	uint64_t totals[CELL_TOTAL_COUNT];
	struct histogram_summary latency;
};

/* What dead processes hold of bulkheads is given back, so that it shows in no snapshot. How many
 * places those were. Asks `is_alive` once a taken place. */
uint32_t snapshot_reclaim(struct segment *segment, seat_is_alive *is_alive);

/* False where index is out of range or the cell is not live. */
bool snapshot_take(struct segment *segment, uint32_t index, uint64_t now_ns,
		struct cell_snapshot *ret);

/* "pay.internal:443", "[2001:db8::1]:5432", or "pay.internal" for lookups; shortened to fit. */
void snapshot_target(const struct cell_snapshot *snapshot, char *ret, size_t size);

#endif
