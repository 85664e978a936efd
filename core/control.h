/* SPDX-License-Identifier: MIT */
/* A circuit by hand: what the command does to it. As breaker.h in all else. */
#ifndef SHUNT_CORE_CONTROL_H
#define SHUNT_CORE_CONTROL_H

#include <stdint.h>

#include "core/breaker.h"

/* Opens (again, with a new sleep window). */
void control_trip(const struct breaker *breaker, uint64_t now_ns);

/* Lets probes through at once. */
void control_half(const struct breaker *breaker, uint64_t now_ns);

/* Closes, with an empty window and a new epoch. */
void control_reset(const struct breaker *breaker, uint64_t now_ns);

/* The limit of `concurrency`, for all processes: CELL_UNLIMITED, or 0 for what rules say. */
void control_limit(const struct breaker *breaker, uint32_t concurrency);

/* FORCE_NONE lifts it. */
void control_force(const struct breaker *breaker, enum force force, uint64_t now_ns);

#endif
