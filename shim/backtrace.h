/* SPDX-License-Identifier: MIT */
/*
 * Who called when a circuit opened (SHUNT_BACKTRACE=1). libunwind is loaded at run time and only
 * here: linked, it would replace the C++ unwinder of every host. Needs its library, not its
 * headers.
 *
 * Unwinding and symbol names take the loader's lock, which the rest of the shim never does; that is
 * the price of asking for backtraces.
 */
#ifndef SHUNT_SHIM_BACKTRACE_H
#define SHUNT_SHIM_BACKTRACE_H

#define BACKTRACE_FRAMES 24

/* At start only, once, after log_start(): loads libunwind and makes the first unwind, the slow one.
 * Without libunwind one line goes to the log and backtraces stay off, as without a log. */
void backtrace_start(void);

/* The calling thread's frames above this library, one log line each. Does nothing before
 * backtrace_start() and where no line goes anywhere: unwinding makes system calls, for which a
 * seccomp filter may kill. Keeps errno. */
void backtrace_log(void);

/* In a forked child: none from now on. The loader's lock may have been held by another thread. */
void backtrace_forked(void);

#endif
