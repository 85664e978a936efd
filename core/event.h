/* SPDX-License-Identifier: MIT */
/*
 * What happened, by name; the ring in the segment that keeps the last ones. Writers never wait;
 * readers skip what is half written. Any bit pattern is a legal ring. Async-signal-safe.
 */
#ifndef SHUNT_CORE_EVENT_H
#define SHUNT_CORE_EVENT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EVENT_RING_SIZE 512
#define EVENT_NAME_SIZE 32
#define EVENT_TARGET_SIZE 96

enum event_kind {
	EVENT_NONE,
	EVENT_TRIPPED,
	EVENT_HALF_OPENED,
	EVENT_REOPENED,
	EVENT_CLOSED,
	EVENT_FORCED,       /* by hand: detail is enum force */
	EVENT_TRIPPED_BY_HAND,
	EVENT_RESET,
	EVENT_OVERFLOW,     /* no cell left for a target: it passes unmetered */
	EVENT_INJECTED,     /* faults, by a rule of that name: detail is how many by then */
	EVENT_COUNT
};

/* "tripped", "half_opened", ... Static. */
const char *event_kind_name(enum event_kind kind);

/* An event, taken out of the ring. */
struct event {
	uint64_t sequence; /* 1, 2, 3, ... */
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint32_t kind;
	uint32_t pid;
	uint32_t requests, errors; /* of the window, where it tripped */
	uint32_t detail;
	uint32_t is_lookup;
	char name[EVENT_NAME_SIZE];     /* rule; shortened if longer */
	char target[EVENT_TARGET_SIZE]; /* host address port, for people; shortened if longer */
};

struct event_slot {
	_Atomic uint64_t sequence;  /* 0: empty; else sequence << 1 | is being written */
	_Atomic uint64_t words[20]; /* a struct event without its sequence */
	_Atomic uint64_t check;     /* hash of words and sequence: two writers may have mixed */
	uint64_t reserved[2];
};

struct event_ring {
	_Atomic uint64_t head; /* sequence of the newest event */
	uint64_t reserved[7];
	struct event_slot slots[EVENT_RING_SIZE];
};

static_assert(sizeof(struct event) == 8 + 20 * 8, "an event fills its slot");
static_assert(sizeof(struct event_slot) == 192, "event layout is shared: bump SEGMENT_VERSION");

/* Appends; event->sequence is ignored. */
void event_write(struct event_ring *ring, const struct event *event);

/* Copies the oldest complete event with a sequence above `after`, of those the ring still has. What
 * its writer has not finished is skipped once a newer one is complete: it may have died. False
 * where there is none (yet). Text in *ret is terminated and printable whatever the ring holds. */
bool event_read(const struct event_ring *ring, uint64_t after, struct event *ret);

/* Sequence of the newest event. */
uint64_t event_newest(const struct event_ring *ring);

#endif
