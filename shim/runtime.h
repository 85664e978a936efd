/* SPDX-License-Identifier: MIT */
/*
 * What this process runs with: its rules, the segment, switches. Written at start (and a few fields
 * after fork); read by hooks.
 */
#ifndef SHUNT_SHIM_RUNTIME_H
#define SHUNT_SHIM_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/breaker.h"
#include "core/config.h"
#include "core/segment.h"

struct runtime {
	_Atomic bool is_active; /* rules and a segment are there: hooks may judge */
	bool observe;           /* decide, count and log; refuse nothing */
	uint32_t pid;
	uint64_t seed;
	struct segment *segment;
	const char *private_reason; /* why the breakers are private, or NULL */
	struct segment_rule *rule_records[CONFIG_MAX_RULES]; /* by index of rule; may hold NULL */
	struct config config;
};

extern struct runtime runtime __attribute__((visibility("hidden")));

/* Is this call one to judge? Not before the constructor, not in a vfork child. */
bool runtime_is_judging(void);

/* Before a seccomp filter is set: from now on no call of our own, as own_calls_forbid(). Then
 * whether it was set: as before, or counted for status. */
void runtime_filter_begins(void);
void runtime_filter_ended(bool is_set);

/* In a forked child: its own pid. */
void runtime_forked(void);

/* A number for this call: from the seed, a counter, and all that the cell has counted, so that
 * programs which live for one call each do not all draw the same. */
uint64_t runtime_random(const struct cell *cell);

/* The breaker of a rule's cell, ready for breaker_*(). */
static inline struct breaker runtime_breaker(const struct rule *rule, struct cell *cell)
{
	/* No holder: it asks for no place. */
	return (struct breaker){
		.cell = cell,
		.settings = &rule->settings,
		.events = &runtime.segment->events,
		.pid = runtime.pid,
	};
}

/* The cell for an endpoint that `rule` matched, by the rule's `per`; NULL when the table is full.
 * host: the name the rule matched, or NULL where it matched the address. Who keeps the cell from
 * call to call keeps *ret_key_hash (may be NULL) too, for segment_cell_is(). */
struct cell *runtime_cell(const struct rule *rule, enum cell_kind kind,
		const struct endpoint *endpoint, uint64_t now_ns, uint64_t *ret_key_hash);

/* Counts a match of the rule, for status. */
void runtime_matched(const struct rule *rule);

/* Counts a connection of the rule whose `timeout` is not enforced as it should be, for status. */
void runtime_unenforced(const struct rule *rule, enum unenforced why);

/* Tells the log about a transition, if there was one. */
void runtime_announce(const struct breaker *breaker, enum transition transition);

#endif
