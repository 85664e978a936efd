/* SPDX-License-Identifier: MIT */
/*
 * Where injections are told, a line each, and from where they are told again: the files of
 * SHUNT_REPORT and SHUNT_REPLAY, variables between our own parts that `shunt run` sets. Lines are
 * appended by one write each, through raw system calls; none once a seccomp filter was seen.
 * Async-signal-safe but for start; errno is kept.
 */
#ifndef SHUNT_SHIM_FAULT_REPORT_H
#define SHUNT_SHIM_FAULT_REPORT_H

#include <stdbool.h>

#include "core/injection.h"

/* `report` must stay. Either may be "": none. */
void fault_report_start(const char *report, const char *replay);

/* False: there is a report, and the line could not be appended to it. */
bool fault_report(const struct injection *injection);

/* Is it decided by a report what is injected? Also where that could not be read: then nothing. */
bool fault_report_is_replayed(void);

/* What it says was injected there, or NULL. */
const struct injection *fault_report_find(const char *rule, struct fault_unit unit);

#endif
