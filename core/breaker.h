/* SPDX-License-Identifier: MIT */
/*
 * The breaker: acquire, report, release; trip, reset, force by hand. Composes circuit, window,
 * totals and events of one cell with the settings of this process's rule. (Hystrix semantics:
 * DESIGN.md section 4.)
 *
 * Nothing here locks, allocates, reads a clock or makes a system call; all of it is
 * async-signal-safe and may race with any number of threads and processes on one cell.
 * Time is CLOCK_MONOTONIC in nanoseconds.
 */
#ifndef SHUNT_CORE_BREAKER_H
#define SHUNT_CORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

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
};

struct decision {
	bool is_admitted;
	enum transition transition; /* what this very acquire changed, for the log */
};

/*
 * Asks for a permit. Admitted: *ret_permit is set and must be ended by exactly one
 * breaker_report(). Refused: counted as short-circuited, *ret_permit is PERMIT_NONE. `random` is
 * any 64-bit number, used only with probes=20%.
 */
struct decision breaker_acquire(const struct breaker *breaker, uint64_t now_ns, uint64_t random,
		struct permit *ret_permit);

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

/* By hand. trip opens (again, with a new sleep window), half lets probes through at once, reset
 * closes with an empty window and a new epoch. force: FORCE_NONE lifts it. */
void breaker_trip(const struct breaker *breaker, uint64_t now_ns);
void breaker_half(const struct breaker *breaker, uint64_t now_ns);
void breaker_reset(const struct breaker *breaker, uint64_t now_ns);
void breaker_force(const struct breaker *breaker, enum force force, uint64_t now_ns);

#endif
