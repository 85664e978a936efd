/* SPDX-License-Identifier: MIT */
/*
 * What is chosen when a unit begins, a connection or a call on it, and how it is told when it is
 * carried out: in the rule's record, the report, the cell's totals, the events. Chosen once, since
 * nothing that a system call comes to is the same in another run. Async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_INJECT_CHOOSE_H
#define SHUNT_SHIM_INJECT_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "shim/inject_slot.h"

/* A new attempt of the connection, under these rules: each gives it a number. */
void inject_attempt_begins(struct slot *slot, const struct connection *connection,
		const uint32_t *rules, uint32_t count, uint64_t now_ns);

/* Before each call on a connection: another unit may have begun, rules may have been added or
 * cleared. False: no rule has anything to do with it now. */
bool inject_concerns(struct slot *slot, struct connection *connection, int fd);

/* Carries out a strike that is armed, which then is in state `next`. False: it does not strike
 * after all (`times`, its end, another thread was first). */
bool inject_strikes(struct slot *slot, struct strike *strike, enum strike_state next,
		const struct connection *connection, uint64_t now_ns);

/* Is its rule over (not in a replay, where a rule has no end)? What goes on, ends then. */
bool inject_is_over(const struct strike *strike, uint64_t now_ns);

/* It cannot be carried out. */
void inject_is_suppressed(struct slot *slot, struct strike *strike, enum fault_reason reason);

/* What was armed for the attempt and did not come to it. */
void inject_attempt_ended(struct slot *slot);

/* The same for what is no connection of fd_table: a lookup, a datagram. */
struct inject_unit {
	struct fault_rule *rule;
	struct fault_unit unit;
	struct cell *cell; /* or NULL */
};

/* As fault_choose(); counted where it does not strike. */
struct fault_choice inject_choose_unit(const struct inject_unit *unit, uint64_t now_ns);
/* As inject_strikes(). */
bool inject_unit_strikes(const struct inject_unit *unit, uint64_t value, uint64_t now_ns);

/* At the program's end: what never struck is counted so. */
void inject_choices_end(void);
/* In a forked child. */
void inject_choices_forked(void);

#endif
