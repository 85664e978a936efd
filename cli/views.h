/* SPDX-License-Identifier: MIT */
/* Endpoints, each with what all rules say of it. */
#ifndef SHUNT_CLI_VIEWS_H
#define SHUNT_CLI_VIEWS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/endpoints.h"
#include "cli/explain.h"
#include "cli/state.h"
#include "core/config.h"
#include "core/fault_table.h"

#define VIEW_FAULTS_MAX (CONFIG_MAX_FAULTS + FAULT_TABLE_SIZE)

/* In the order of the rules in struct views. */
struct view {
	const struct known_endpoint *known;
	struct explanation rules[CONFIG_MAX_RULES];
	struct explanation faults[VIEW_FAULTS_MAX];
};

struct views {
	const struct state *state;
	struct endpoints endpoints;
	/* Of this environment; behind them those that were added by hand. */
	struct fault faults[VIEW_FAULTS_MAX];
	size_t fault_count, own_fault_count;
	struct view views[ENDPOINTS_MAX];
	size_t count;
};

/* As endpoints_find(). */
const char *views_make(struct views *views, const struct state *state, const char *operand);

/* The breaker rule that applies, or NULL. */
const struct rule *view_rule(const struct views *views, const struct view *view);

/* Addresses of one name about which all rules say the same are shown together. */
bool views_are_alike(const struct views *views, const struct view *a, const struct view *b);

/* The circuit that this endpoint's calls are under, as far as there is one. */
bool view_circuit(const struct views *views, const struct view *view, struct cell_snapshot *ret);

#endif
