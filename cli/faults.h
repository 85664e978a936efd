/* SPDX-License-Identifier: MIT */
/* The fault rules of the segment: those of the processes' environments, and those added by hand. */
#ifndef SHUNT_CLI_FAULTS_H
#define SHUNT_CLI_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/state.h"
#include "core/fault_table.h"

#define FAULTS_TEXT_SIZE 64

/* In order of name, then of age; `ret` has room for FAULT_TABLE_SIZE. */
size_t faults_gather(const struct state *state, uint64_t now_ns, struct fault_view *ret);

/* A table of them for people; nothing where there is none. How many there are. Unless `shows_all`,
 * those that have long ended, and of the environment's those that no process has used for a minute
 * but the latest, are counted alone. */
size_t faults_print(const struct state *state, bool shows_all);

/* "23.4s", into `ret` of FAULTS_TEXT_SIZE; returned. */
const char *faults_span(uint64_t ns, char *ret);

/* "23.4s", "over", or "-" for rules of an environment. Into `ret` of FAULTS_TEXT_SIZE; returned. */
const char *faults_ends_in(const struct fault_view *view, uint64_t now_ns, char *ret);

#endif
