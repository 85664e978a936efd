/* SPDX-License-Identifier: MIT */
/*
 * The timer thread: moves open circuits to half-open when their sleep window ends, ends calls whose
 * deadline has passed, and gives back readiness that is held (shim/withheld.h). Exists only while
 * something is due, or a connection is open whose calls have deadlines; correctness never depends
 * on it (docs/BEHAVIOUR.md section 5).
 *
 * It blocks all signals, has a small stack and no descriptor, and ends at once when it is the last
 * thread alive, when a seccomp filter was seen, and when nothing is watched. Starting it calls
 * pthread_create(), the one thing in a hook that a signal handler must not do: so a thread that has
 * a signal blocked never starts it. (A handler that blocks nothing, its own signal included, may.)
 */
#ifndef SHUNT_SHIM_TIMER_H
#define SHUNT_SHIM_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/breaker.h"
#include "core/cell.h"
#include "core/config.h"

/* From connect or getaddrinfo only: this rule's circuit is open; wake it at `due_ns`. Starts the
 * thread where SHUNT_TIMER allows (auto: only in a program that already has threads). Never blocks,
 * never fails the caller, keeps errno; costs a few loads where the circuit is watched already. */
void timer_watch(const struct rule *rule, struct cell *cell, uint64_t due_ns);

/* The same where the circuit is open, due at the end of its sleep window. */
void timer_watch_open(const struct rule *rule, const struct breaker *breaker, uint64_t now_ns);

/* From connect: a call has a deadline; or from a wait: something is held. Starts the thread in a
 * single-threaded program, too, and where a signal is blocked, unless that is one with a handler.
 * False: no thread may run or could be made. */
bool timer_watch_deadlines(uint64_t due_ns);

/* A deadline may have begun to run (0: none): the thread looks sooner if it would look later. A few
 * loads where it would not. Never starts it. */
void timer_expect(uint64_t due_ns);

/* Does it run, or will it at once? */
bool timer_is_running(void);

/* In a forked child: there is no thread, and nothing is watched. */
void timer_forget(void);

#endif
