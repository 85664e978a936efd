/* SPDX-License-Identifier: MIT */
/*
 * The timer thread: moves open circuits to half-open when their sleep window ends. Exists only while
 * something is due; correctness never depends on it (DESIGN.md section 7).
 */
#ifndef SHUNT_SHIM_TIMER_H
#define SHUNT_SHIM_TIMER_H

#include <stdint.h>

#include "core/cell.h"
#include "core/config.h"

/* From connect or getaddrinfo only: this rule's circuit is open; wake it at `due_ns`. Starts the
 * thread where SHUNT_TIMER allows (auto: only in a program that already has threads). Never blocks,
 * never fails the caller. */
void timer_watch(const struct rule *rule, struct cell *cell, uint64_t due_ns);

/* Ends the thread and waits until it is gone: before unshare() and setns(), and at exit. A later
 * timer_watch() may start it again. */
void timer_stop(void);

/* In a forked child: there is no thread. */
void timer_forget(void);

#endif
