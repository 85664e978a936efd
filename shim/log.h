/* SPDX-License-Identifier: MIT */
/*
 * Lines out through real system calls; never allocates, never keeps a descriptor, never uses stdio
 * or the locale, and leaves errno alone. Silent with SHUNT_LOG=off (the default) and once a seccomp
 * filter was seen. One write (or datagram) per line. Async-signal-safe.
 */
#ifndef SHUNT_SHIM_LOG_H
#define SHUNT_SHIM_LOG_H

#include "core/config.h"

/* `path` is used with LOG_FILE and must stay. */
void log_start(enum log_kind kind, const char *path);
void log_stop(void);

/* "shunt: ..." and a newline are added (with time and pid in a file); formats as text_format(). */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
