/* SPDX-License-Identifier: MIT */
/*
 * One rule and a unit that falls under it (a connection, a call, a lookup, a datagram): whether it
 * is to strike, and how it is told where it did: in the rule's record, the report, the cell's
 * totals, the events. Lock-free, async-signal-safe, errno is kept.
 */
#ifndef SHUNT_SHIM_INJECT_UNIT_H
#define SHUNT_SHIM_INJECT_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "shim/fault_rules.h"

struct inject_unit {
	struct fault_rule *rule;
	struct fault_unit unit;
	struct cell *cell; /* of the breaker rule that judges it, or NULL */
};

/* As fault_choose(), or as the report says that is replayed. Counted where it does not strike. */
struct fault_choice inject_unit_choose(const struct inject_unit *unit, uint64_t now_ns);

/* It is carried out now, with the value that was chosen. False: not after all (`times`, the rule's
 * end). */
bool inject_unit_strikes(const struct inject_unit *unit, uint64_t value, uint64_t now_ns);

/* The same of one that makes something late: by how much, 0 where it does not strike. */
uint64_t inject_unit_strikes_delay(const struct inject_unit *unit, uint64_t delay_ns,
		uint64_t now_ns);

/* Has the rule come to its end (not in a replay, where none has one)? What goes on, ends then. */
bool inject_unit_is_over(struct fault_rule *rule, uint64_t now_ns);

#endif
