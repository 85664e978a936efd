/* SPDX-License-Identifier: MIT */
/*
 * An attempt to connect under faults: which rules it falls under, and what they make of it: late,
 * silent, or failing without being made. Async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_ATTEMPT_H
#define SHUNT_SHIM_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "shim/inject_slot.h"

struct attempt {
	struct sight sight; /* connection NULL: nothing was known of it before */
	const struct sockaddr *address;
	socklen_t length;
	uint64_t delay_ns;
	int error; /* it fails with this, and is not made; 0: it is made */
};

/* False: no rule has anything to do with it, or there is no room. The connection may be there
 * nevertheless; one that was not there is unjudged. */
bool attempt_begins(struct attempt *attempt);

/* All delays add up; of what fails it the first strikes. */
void attempt_meets_faults(struct attempt *attempt);

/* The same where nothing can be late: what goes with the SYN cannot be told from what goes later.
 */
void attempt_meets_errors(struct attempt *attempt);

#endif
