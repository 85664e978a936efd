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
	 * (backoff). Written before the trip, only forward: a hint that no state depends on. */
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
	uint32_t issued_ms; /* of a probe */
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

#define CIRCUIT_EPOCH_MASK 0x3fffu
#define CIRCUIT_MAX_PROBES 15u
#define CIRCUIT_MAX_SKEW_MS 60000u

/* What the rule of whoever decides says about its circuit. */
struct circuit_policy {
	uint32_t sleep_ms;
	uint32_t lease_ms;     /* 0: a probe may stay unreported for ever */
	uint32_t probes;       /* 1..CIRCUIT_MAX_PROBES */
	uint32_t probes_ratio; /* 0, or parts per million of calls that half-open admits instead */
	uint32_t errors_ratio; /* parts per million */
	uint32_t slow_ratio;   /* above a million: slow probes are not judged */
	uint32_t backoff_factor_thousandths; /* 0: the sleep stays as it is */
	uint32_t backoff_max_ms;
	bool judges_by_rate;   /* all probes, by errors_ratio; else one bad probe reopens */
	bool releases_neutral; /* a neutral end frees the slot; otherwise it reopens */
};

static inline struct circuit_view circuit_unpack(uint64_t word)
{
	unsigned int state = (unsigned int)(word >> 62);

	return (struct circuit_view){
		.state = state > CIRCUIT_HALF_OPEN ? CIRCUIT_CLOSED : (enum circuit_state)state,
		.epoch = (uint32_t)(word >> 48) & CIRCUIT_EPOCH_MASK,
		.time_ms = (uint32_t)(word >> 16),
		.issued = word >> 12 & 15,
		.ok = word >> 8 & 15,
		.bad = word >> 4 & 15,
		.slow = word & 15,
	};
}

/* The word as it is now. Acquire: who sees a new epoch also sees what was written before it. */
static inline struct circuit_view circuit_read(const struct circuit *circuit)
{
	return circuit_unpack(atomic_load_explicit(&circuit->word, memory_order_acquire));
}

/* now - then on the 32-bit clock. What lies up to a minute ahead is a CPU's or a coarse clock's
 * skew and counts as 0; anything further ahead is from another boot and counts as long ago. */
static inline uint32_t circuit_elapsed_ms(uint32_t then_ms, uint32_t now_ms)
{
	uint32_t elapsed_ms = now_ms - then_ms;

	return elapsed_ms > UINT32_MAX - CIRCUIT_MAX_SKEW_MS ? 0 : elapsed_ms;
}

/* The sleep window of an open circuit in that epoch, backoff included. */
uint32_t circuit_sleep_ms(const struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t epoch);

/* Would circuit_acquire() not refuse (with probes_ratio: not for sure)? Changes nothing. */
bool circuit_admits(const struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms);

/*
 * Takes a permit; *ret_permit is a normal one while closed, a probe's, or PERMIT_NONE where the
 * call is refused. Opens half where the sleep window is over. `random` is uniform over 64 bits,
 * used only with probes_ratio.
 */
enum transition circuit_acquire(struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms, uint64_t random, struct permit *ret_permit);

/* open -> half-open where the sleep window is over, with all slots free. */
enum transition circuit_wake(struct circuit *circuit, const struct circuit_policy *policy,
		uint32_t now_ms);

/* closed -> open, if the circuit is still closed in that epoch. */
enum transition circuit_trip(struct circuit *circuit, uint32_t epoch, uint32_t now_ms);

enum probe_end { PROBE_OK, PROBE_BAD, PROBE_NEUTRAL, PROBE_UNUSED };

struct probe_settlement {
	enum transition transition;
	bool is_late; /* another epoch, or superseded after its lease: it must count nowhere else */
};

/* Ends a probe. A success counts as long as the epoch lasts, whatever became of the lease. */
struct probe_settlement circuit_settle(struct circuit *circuit, const struct circuit_policy *policy,
		struct permit permit, enum probe_end end, bool is_slow, uint32_t now_ms);

/* The lease of the newest probe ends `remaining_ms` from now (0: the full lease). Returns the
 * permit to hold from now on: the same one where the permit is no longer the newest probe. */
struct permit circuit_renew(struct circuit *circuit, const struct circuit_policy *policy,
		struct permit permit, uint32_t remaining_ms, uint32_t now_ms);

/* By hand, from any state; returns the one before. Open: again, with a new sleep window and backoff
 * at its start. Half-open: all slots free, older probes become late. Closed: a new epoch. */
enum circuit_state circuit_set(struct circuit *circuit, enum circuit_state state, uint32_t now_ms);

#endif
