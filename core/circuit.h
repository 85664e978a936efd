/* SPDX-License-Identifier: MIT */
/*
 * Closed, open, half-open: one shared word and its transitions.
 *
 *   state 2 | epoch 14 | time 32 | issued 4 | ok 4 | bad 4 | slow 4
 *
 * time is CLOCK_MONOTONIC in ms: when the state was entered; in half-open when the last probe was
 * issued. The deadline is time plus the sleep or lease of whoever decides. The epoch grows by one
 * when the circuit closes and when a probe opens it again, not when it trips: results of calls
 * admitted before the trip still count until the next turn, but never move a half-open circuit.
 *
 * Lock-free, allocates nothing, async-signal-safe. Any bit pattern is a legal word; state 3 reads
 * as closed.
 */
#ifndef SHUNT_CORE_CIRCUIT_H
#define SHUNT_CORE_CIRCUIT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/outcome.h"

enum circuit_state { CIRCUIT_CLOSED, CIRCUIT_OPEN, CIRCUIT_HALF_OPEN };

/* "closed", "open", "half_open". Static. */
const char *circuit_state_name(enum circuit_state state);

struct circuit {
	_Atomic uint64_t word;
	/* Epoch in which the circuit tripped; epoch minus this is the number of failed probes since
	 * (backoff). Written before the trip, only ever forward: a hint that no state depends on. */
	_Atomic uint32_t tripped_epoch;
	uint32_t reserved;
};

static_assert(sizeof(struct circuit) == 16, "circuit layout is shared: bump SEGMENT_VERSION");

/* The word, taken apart. */
struct circuit_view {
	enum circuit_state state;
	uint32_t epoch;
	uint32_t time_ms;
	uint32_t issued, ok, bad, slow;
};

/* One admitted call: what its end must be told to the circuit with. Eight bytes, a plain value. */
enum permit_kind {
	PERMIT_NONE,    /* no call is open */
	PERMIT_NORMAL,
	PERMIT_PROBE,
	PERMIT_UNMETERED /* enabled=no: ends without a trace */
};

struct permit {
	uint32_t issued_ms;
	uint16_t epoch;
	uint8_t kind; /* enum permit_kind */
	uint8_t reserved;
};

static_assert(sizeof(struct permit) == 8, "a permit fits in one atomic word");

/* What one call to the circuit changed; told to exactly one of all racing callers. */
enum transition {
	TRANSITION_NONE,
	TRANSITION_TRIPPED,     /* closed -> open */
	TRANSITION_HALF_OPENED, /* open -> half-open */
	TRANSITION_REOPENED,    /* half-open -> open: a probe failed */
	TRANSITION_CLOSED       /* half-open -> closed, or any -> closed by hand */
};

#endif
