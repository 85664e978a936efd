/* SPDX-License-Identifier: MIT */
/* What handlers the program has, as masks of signals (bit: number - 1). Changes nothing; makes a
 * system call for each signal that it is asked about. Async-signal-safe, errno is kept. */
#ifndef SHUNT_SHIM_SIGNALS_H
#define SHUNT_SHIM_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Of these, those that have a handler. */
uint64_t signals_handled(uint64_t of);

/* Of these, those whose handler makes a system call that it interrupts fail with EINTR (no
 * SA_RESTART). */
uint64_t signals_interrupting(uint64_t of);

/* A call of ours was interrupted: would one of the program's own have failed with EINTR? Where any
 * handler of its makes that, for which one ran cannot be told; libc's own signals, and those by
 * which crashes are reported, are none. Under a seccomp filter nobody may ask: then it would. */
bool signals_may_interrupt(void);

#endif
