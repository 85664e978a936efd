/* SPDX-License-Identifier: MIT */
/* What the processes of a user share about one fault rule. Lock-free, async-signal-safe. */
#ifndef SHUNT_CORE_FAULT_RECORD_H
#define SHUNT_CORE_FAULT_RECORD_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/fault.h"

#define FAULT_TEXT_SIZE 256
/* A rule of the environment that no process had for so long begins anew. */
#define FAULT_FORGOTTEN_NS 60000000000ull
/* One event in so long, over all processes: the ring is for transitions, too. */
#define FAULT_TOLD_NS 1000000000ull

struct fault_record {
	_Atomic uint64_t key;       /* state, turn, hash of rule and run; 0: free */
	_Atomic uint64_t began_ns;  /* CLOCK_MONOTONIC */
	_Atomic uint64_t used_ns;
	_Atomic uint64_t ends_ns;   /* of a rule added by hand; 0: it is the environment's */
	_Atomic uint64_t connections; /* numbers given out */
	_Atomic uint64_t seen;      /* calls that were looked at */
	_Atomic uint64_t matched;   /* units that the rule was asked about */
	_Atomic uint64_t injected;
	_Atomic uint64_t struck_ns; /* last, for `every` */
	_Atomic uint64_t suppressed[FAULT_REASON_COUNT];
	_Atomic uint64_t unreported; /* injected, and missing in the report */
	_Atomic uint64_t told_ns;    /* last, by an event */
	char name[RULE_NAME_SIZE];
	char text[FAULT_TEXT_SIZE]; /* the rule, without its name; shortened if longer */
	uint64_t reserved[5];
};

static_assert(sizeof(struct fault_record) == 512, "fault layout is shared: bump SEGMENT_VERSION");

/* What it did so far. */
struct fault_counts {
	uint64_t seen, matched, injected, unreported;
	uint64_t suppressed[FAULT_REASON_COUNT];
};

struct fault_counts fault_record_counts(const struct fault_record *record);

/* Gives a connection its number, from 1. */
uint32_t fault_record_connection(struct fault_record *record, uint64_t now_ns);

/* About to strike: false where `times` or `every` forbid it; counted as injected otherwise, or as
 * suppressed. Of all that ask at once, exactly `times` are told true. */
bool fault_record_strike(struct fault_record *record, const struct fault *fault, uint64_t now_ns);

/* A call was looked at; a unit matched; it was not struck. */
void fault_record_seen(struct fault_record *record);
void fault_record_matched(struct fault_record *record);
void fault_record_suppressed(struct fault_record *record, enum fault_reason reason);

/* It was injected, and its line could not be written. */
void fault_record_unreported(struct fault_record *record);

/* It struck: is that worth an event, as none was for FAULT_TOLD_NS? Of all that ask at once, one is
 * told true. */
bool fault_record_is_news(struct fault_record *record, uint64_t now_ns);

/* Its run is over: what it counted can be read until another rule needs the record. */
void fault_record_forget(struct fault_record *record);

/* Is it one of a rule added by hand whose time has passed? */
bool fault_record_is_over(const struct fault_record *record, uint64_t now_ns);

/* Has no process used it for FAULT_FORGOTTEN_NS? */
bool fault_record_is_forgotten(const struct fault_record *record, uint64_t now_ns);

/* Sets all that it counts to 0, as long as its key is `key`; false: it no longer is. */
bool fault_record_clear(struct fault_record *record, uint64_t key);

/* Its numbers begin at 1 again, its time at now_ns; unless it becomes another rule's meanwhile. */
void fault_record_begin_anew(struct fault_record *record, uint64_t now_ns);

#endif
