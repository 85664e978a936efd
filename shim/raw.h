/* SPDX-License-Identifier: MIT */
/*
 * A system call without libc: no hook of ours or of another preload, no errno, no cancellation
 * point. Async-signal-safe.
 */
#ifndef SHUNT_SHIM_RAW_H
#define SHUNT_SHIM_RAW_H

/* Up to six arguments, the rest 0. The kernel's answer: -1 to -4095 are negated errnos. */
long raw_syscall(long number, long a, long b, long c, long d, long e, long f);

#endif
