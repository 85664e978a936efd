/* SPDX-License-Identifier: MIT */
/* The machine-readable forms of status and events. */
#ifndef SHUNT_CLI_JSON_H
#define SHUNT_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/state.h"
#include "core/event.h"

/* All of status. The caller owns the result. Ends the command without memory. */
json_t *json_status(const struct state *state, uint64_t now_ns);

/* The fault rules alone. Likewise. */
json_t *json_fault_list(const struct state *state, uint64_t now_ns);

/* One event; `time` is its wall-clock time as text. The caller owns the result. */
json_t *json_event(const struct event *event, const char *time);

/* One line to standard output; frees `object`. */
void json_print(json_t *object);

#endif
