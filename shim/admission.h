/* SPDX-License-Identifier: MIT */
/*
 * May this call begin? The circuit first, then the bulkheads of its target; where they are full, a
 * caller that may block waits in the queue, if its rule has one, no longer than it would for the
 * kernel. Counts whatever is refused. Keeps
 * errno; blocks only in that queue.
 */
#ifndef SHUNT_SHIM_ADMISSION_H
#define SHUNT_SHIM_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/call.h"

struct asking {
	const struct rule *rule;
	struct cell *cell;
	uint64_t cell_hash;
	int fd;
	bool is_connect;   /* a new connection: `connections` counts it */
	bool may_not_wait; /* MSG_DONTWAIT; whether the socket blocks is asked for where it matters
			    */
};

struct admitted {
	struct ticket ticket;
	place_t place;   /* of the connection */
	uint64_t now_ns; /* later than it was, after a wait */
	bool is_interrupted; /* not refused: it shall fail with EINTR */
};

/* Does anything limit the calls of that rule, but its circuit? Where nothing does call_acquire() is
 * enough. */
static inline bool admission_is_limited(const struct rule *rule, const struct cell *cell)
{
	return cell_concurrency(cell, rule->settings.concurrency) || rule->settings.connections;
}

/* At start: a thread that ends leaves the queue. */
void admission_start(void);

/* False: refused. */
bool admission_ask(const struct asking *asking, uint64_t now_ns, struct admitted *ret);

/* What was admitted cannot begin after all. */
void admission_return(const struct asking *asking, const struct admitted *admitted);

#endif
