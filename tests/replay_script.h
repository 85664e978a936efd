/* SPDX-License-Identifier: MIT */
/* The language of breaker scenarios, read into structs; knows nothing of how it is replayed. */
#ifndef SHUNT_TESTS_REPLAY_SCRIPT_H
#define SHUNT_TESTS_REPLAY_SCRIPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/circuit.h"
#include "core/outcome.h"
#include "core/settings.h"

#define SCRIPT_ERROR_SIZE 512

enum step_op {
	STEP_ACQUIRE,
	STEP_DONE,
	STEP_CALL,
	STEP_COUNTS,
	STEP_STATE,
	STEP_SET,
	STEP_RESET,
	STEP_TRIP,
	STEP_HALF,
	STEP_WALL,
	STEP_DIE,
	STEP_METRIC,
	STEP_INFLIGHT
};

/* Absent numbers are -1, absent texts NULL. */
struct step {
	long long t_ms;
	enum step_op op;
	const char *id, *proc, *metric, *key;
	const json_t *value_to_set;
	long long count; /* `n`, 1 where absent */
	bool has_count;  /* then the ids are id0, id1, ... */
	enum outcome outcome;
	bool is_slow;
	long long allow, allowed, total, errors, percent, slow, value, state;
};

/* A scenario's config as the settings of a rule, and what no rule has. */
struct script_config {
	struct settings settings;
	bool is_snapshot;
	long long close_after;
};

struct script {
	const char *id, *title;
	struct script_config config;
	struct step *steps;
	size_t step_count;
	bool uses_slow;
	json_t *root; /* owns every text above */
};

/* True and *ret filled, to be released with script_finish(). False with "what: expected X, got 'Y'"
 * in `error` (SCRIPT_ERROR_SIZE bytes). */
bool script_read(const char *line, struct script *ret, char *error);

void script_finish(struct script *script);

bool script_requires(const struct script *script, const char *feature);

/* One `key: value` of a config into *config; as script_read() on failure, *config untouched. */
bool script_configure(struct script_config *config, const char *key, const json_t *value,
		char *error);

#endif
