/* SPDX-License-Identifier: MIT */
/* What a fault rule did, in words. */
#ifndef SHUNT_CLI_FAULT_COUNTS_H
#define SHUNT_CLI_FAULT_COUNTS_H

#include "core/fault_record.h"

#define FAULT_COUNTS_SIZE 256

uint64_t fault_counts_suppressed(const struct fault_counts *counts);

/* "2 chance, 1 number"; "" where nothing was suppressed. Into `ret` of FAULT_COUNTS_SIZE, and
 * returned. */
const char *fault_counts_reasons(const struct fault_counts *counts, char *ret);

/* "12 calls seen, 5 matched, 3 injected, 2 suppressed (chance)"; ", 1 of them not
 * reported" behind what was injected, where that is so. Likewise. */
const char *fault_counts_describe(const struct fault_counts *counts, char *ret);

#endif
