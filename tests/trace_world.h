/* SPDX-License-Identifier: MIT */
/*
 * The processes and descriptors of a trace. Keeps what the shim's table of descriptors keeps, and
 * tells the exchanges of it what the shim would; decides nothing about calls.
 */
#ifndef SHUNT_TESTS_TRACE_WORLD_H
#define SHUNT_TESTS_TRACE_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/outcome.h"
#include "core/settings.h"
#include "tests/trace_event.h"

/* One attempt to connect, and how the calls on it ended. */
struct trace_attempt {
	char peer[TRACE_PEER_SIZE];
	enum outcome *outcomes;
	size_t count;
};

struct trace_world;

/* `settings` stay the caller's. Task 1 runs, nothing is open. NULL without memory. */
struct trace_world *trace_world_create(const struct settings *settings);
void trace_world_destroy(struct trace_world *world);

/* One event. False with the complaint where it cannot have happened (an unknown task). */
bool trace_world_happens(struct trace_world *world, const struct trace_event *event,
		struct trace_complaint *complaint);

/* The attempts in the order of their first connect. The world's. */
const struct trace_attempt *trace_world_attempts(const struct trace_world *world,
		size_t *ret_count);

#endif
