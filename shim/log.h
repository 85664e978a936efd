/* SPDX-License-Identifier: MIT */
/*
 * Lines out through raw system calls; never allocates, never keeps a descriptor, never uses stdio
 * or the locale, never waits, raises no signal, and leaves errno alone. Silent with SHUNT_LOG=off
 * (the default) and once a seccomp filter was seen (log_stop()). One write, or datagram, per line.
 * Async-signal-safe.
 *
 * `stderr` is the file that descriptor 2 was at log_start(): a program that closed it, or put
 * another file there, gets no line of ours into that. A file is opened, appended to and closed for
 * each line; only regular files and devices are written to, and never past RLIMIT_FSIZE.
 */
#ifndef SHUNT_SHIM_LOG_H
#define SHUNT_SHIM_LOG_H

#include <stdbool.h>

#include "core/config.h"

#define LOG_LINE_SIZE 512 /* a longer line is cut */

/* `path` is used with LOG_FILE and must stay. */
void log_start(enum log_kind kind, const char *path);
void log_stop(void);

/* Will a line go anywhere? */
bool log_is_on(void);

/* "shunt: ..." and a newline are added (with time and pid in a file); formats as text_format(). */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "2026-01-02T03:04:05Z" into ret (21 bytes): UTC, without the time zone's lock. Returns ret. */
char *log_format_time(uint64_t unix_seconds, char *ret);

#endif
