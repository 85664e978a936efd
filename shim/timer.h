/* SPDX-License-Identifier: MIT */
/*
 * The timer thread: moves open circuits to half-open when their sleep window ends. Exists only
 * while something is due; correctness never depends on it (docs/BEHAVIOUR.md section 5).
 *
 * It blocks all signals, has a small stack and no descriptor, and ends at once when it is the last
 * thread alive, when a seccomp filter was seen, and when nothing is watched. Starting it calls
 * pthread_create(), the one thing in a hook that a signal handler must not do: so a thread that has
 * a signal blocked never starts it. (A handler that blocks nothing, its own signal included, may.)
 */
#ifndef SHUNT_SHIM_TIMER_H
#define SHUNT_SHIM_TIMER_H

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

/* In a forked child: there is no thread, and nothing is watched. */
void timer_forget(void);

#endif
