/* SPDX-License-Identifier: MIT */
/*
 * The breaker: acquire, report, release. Composes circuit, window,
 * totals and events of one cell with the settings of this process's rule. (Hystrix semantics:
 * docs/BEHAVIOUR.md section 3.)
 *
 * Nothing here locks, allocates, reads a clock or makes a system call; all of it is
 * async-signal-safe and may race with any number of threads and processes on one cell.
 * Time is CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef SHUNT_CORE_BREAKER_H
#define SHUNT_CORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/bulkhead.h"
#include "core/cell.h"
#include "core/circuit.h"
#include "core/event.h"
#include "core/outcome.h"
#include "core/settings.h"

/* A value, cheap to make on the stack for each call. */
struct breaker {
	struct cell *cell;
	const struct settings *settings;
	struct event_ring *events; /* may be NULL: nothing is recorded */
	uint32_t pid;              /* for events */
	struct holder *holder;     /* of the process; may be NULL: no bulkhead */
	uint64_t cell_hash;        /* of the cell's key; used with a holder only */
};

struct decision {
	bool is_admitted;
	bool is_full; /* refused by the bulkhead, and nothing was counted yet: see below */
	enum transition transition; /* what this very acquire changed, for the log */
};

/*
 * Asks for a permit. Admitted: *ret_permit is set and must be ended by exactly one
 * breaker_report(). Refused: counted as short-circuited, *ret_permit is PERMIT_NONE. `random` is
 * any 64-bit number, used only with probes=20%.
 *
 * Where the rule limits `concurrency` an admitted call holds *ret_place too, to be given back with
 * place_give() when it has truly ended, which may be after the permit has. No place left: is_full;
 * the caller waits and asks again, or counts it with breaker_reject(). All zero where no place was
 * needed. A full bulkhead never takes a half-open slot.
 */
struct decision breaker_acquire(const struct breaker *breaker, uint64_t now_ns, uint64_t random,
		struct permit *ret_permit, place_t *ret_place);

/* Counts a call that a bulkhead, a queue or a pool rejected: as `rejected`, as `reason` (one of the
 * CELL_TOTAL_rejected...), and in the window as the rule's `rejects` says. */
enum transition breaker_reject(const struct breaker *breaker, enum cell_total reason,
		uint64_t now_ns);

/* The limit of `concurrency` in force, 0: none. What was set by hand beats the rule. */
uint32_t breaker_concurrency(const struct breaker *breaker);

/*
 * Ends a permit. `outcome` is SUCCESS, FAILURE, TIMEOUT, REJECTED, CANCELLED, IGNORED or UNUSED;
 * `duration_ns` is how long the call took (latency, `slow`), not used for the last three.
 * PERMIT_NONE is accepted and does nothing, so a caller may swap its permit out and report blindly.
 * A permit of an earlier epoch changes nothing but `late`.
 */
enum transition breaker_report(const struct breaker *breaker, struct permit permit,
		enum outcome outcome, uint64_t duration_ns, uint64_t now_ns);

/*
 * A probe's lease, for whoever holds one: from now on it ends `remaining_ms` from now (0: the
 * rule's full lease). Only while the permit is the newest probe; returns the permit to hold from
 * now on. (A probe on an established, silent connection keeps its slot for one second only.)
 */
struct permit breaker_renew(const struct breaker *breaker, struct permit permit,
		uint32_t remaining_ms, uint64_t now_ns);

/* open -> half-open where the sleep window is over, as the next acquire would (timer thread). */
enum transition breaker_wake(const struct breaker *breaker, uint64_t now_ns);

/* When breaker_wake() would change something: ns on CLOCK_MONOTONIC, or 0 if the circuit is not
 * open. */
uint64_t breaker_wake_time_ns(const struct breaker *breaker, uint64_t now_ns);

/* The state that an acquire would see, forces included, without changing anything. */
enum circuit_state breaker_state(const struct breaker *breaker, uint64_t now_ns);

/* A closed circuit: does what was counted trip it? After its force was lifted, which judged
 * nothing. */
enum transition breaker_judge(const struct breaker *breaker, uint64_t now_ns);

#endif
