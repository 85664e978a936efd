/* SPDX-License-Identifier: MIT */
/*
 * The fault rules of this process: those of its environment, and those that were added by hand to
 * the segment since. Once here, a rule stays where it is as long as the process lives: whoever
 * keeps its number never finds another there. One that is over is asked no more. Lock-free,
 * async-signal-safe, but for fault_rules_start().
 */
#ifndef SHUNT_SHIM_FAULT_RULES_H
#define SHUNT_SHIM_FAULT_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/fault.h"
#include "core/fault_table.h"
#include "shim/runtime.h"

#define FAULT_RULES_MAX 1024 /* of which a process has seen this many, it takes no more ... */
#define FAULT_RULES_LEAST 128 /* ... or only this many, where its memory is limited */

struct fault_rule {
	struct fault fault;
	struct fault_record *_Atomic record; /* fault_rule_record() */
	_Atomic uint64_t key;        /* the record's, while it is this rule's */
	struct fault_record own;     /* where the segment has no room for it, or no more */
	bool is_added;               /* by hand; else it is the environment's */
	_Atomic bool is_gone;        /* cleared by hand */
};

struct fault_rules {
	struct fault_rule *rules; /* NULL until start */
	uint32_t capacity;
	_Atomic uint32_t count;
	_Atomic uint64_t generation; /* of the segment's table, as it was last read */
	_Atomic uint64_t reading; /* by a thread, since when; 0: by none */
};

extern struct fault_rules fault_rules __attribute__((visibility("hidden")));

/* At start, with a segment: takes the environment's rules, and what was added by hand; `program` is
 * its base name, and stays. False without memory. */
bool fault_rules_start(const char *program, uint64_t now_ns);

/* Were rules added or cleared by hand since? Two loads. */
static inline bool fault_rules_have_changed(void)
{
	return atomic_load_explicit(&runtime.segment->faults.generation, memory_order_relaxed) !=
			atomic_load_explicit(&fault_rules.generation, memory_order_relaxed);
}

/* Reads them again, unless another thread is at it. */
void fault_rules_refresh(uint64_t now_ns);

static inline uint32_t fault_rules_count(void)
{
	return atomic_load_explicit(&fault_rules.count, memory_order_acquire);
}

static inline struct fault_rule *fault_rule_at(uint32_t index)
{
	return &fault_rules.rules[index];
}

/* What is counted for it. One that the segment gave to another rule goes on in a record of this
 * process, with the numbers that were reached. */
static inline struct fault_record *fault_rule_record(struct fault_rule *rule)
{
	struct fault_record *record = atomic_load_explicit(&rule->record, memory_order_relaxed);

	if (__builtin_expect(atomic_load_explicit(&record->key, memory_order_relaxed) !=
			atomic_load_explicit(&rule->key, memory_order_relaxed), 0))
		return &rule->own;
	return record;
}

/* As fault_record_connection() and fault_record_strike(). */
uint32_t fault_rule_connection(struct fault_rule *rule, uint64_t now_ns);
bool fault_rule_strike(struct fault_rule *rule, uint64_t now_ns);

/* Has it come to its end: cleared, or its time is over? */
bool fault_rule_is_over(struct fault_rule *rule, uint64_t now_ns);

/* Numbers of the rules that apply to an endpoint, at most `room`, in order; how many. Those
 * beyond are suppressed. None where a
 * rule ^target keeps it out. */
uint32_t fault_rules_match(const struct endpoint *endpoint, enum fault_protocol protocol,
		uint64_t now_ns, uint32_t *ret, uint32_t room);

/* The same of what a socket is, or is to be, connected to. */
uint32_t fault_rules_match_peer(const struct sockaddr *peer, socklen_t length,
		enum fault_protocol protocol, uint64_t now_ns, uint32_t *ret, uint32_t room);

/* Is some rule decided by this name (normalised)? */
bool fault_rules_want_name(const char *name);

/* In a forked child: nobody is reading. */
void fault_rules_forked(void);

#endif
