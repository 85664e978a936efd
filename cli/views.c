/* SPDX-License-Identifier: MIT */
#include "cli/views.h"

#include <string.h>

#include "core/clock.h"
#include "core/fault_text.h"

/* What reads no longer as a rule was damaged, and applies nowhere. */
static void add_added_faults(struct views *views, uint64_t now_ns)
{
	struct fault_view view;
	char problem[CONFIG_PROBLEM_SIZE];

	for (uint32_t i = 0; views->state->segment && i < FAULT_TABLE_SIZE; i++) {
		if (fault_table_read(&views->state->segment->faults, i, now_ns, &view) &&
				view.is_added && !view.is_over &&
				fault_parse(view.name, view.text, strlen(view.text),
						&views->faults[views->fault_count], problem,
						sizeof(problem)))
			views->fault_count++;
	}
}

const char *views_make(struct views *views, const struct state *state, const char *operand)
{
	const char *expected = endpoints_find(operand, state, &views->endpoints);

	if (expected)
		return expected;
	views->state = state;
	views->fault_count = views->own_fault_count = state->config.fault_count;
	memcpy(views->faults, state->config.faults,
			views->own_fault_count * sizeof(views->faults[0]));
	add_added_faults(views, clock_now_ns());
	views->count = views->endpoints.count;
	for (size_t i = 0; i < views->count; i++) {
		struct view *view = &views->views[i];
		struct endpoint endpoint = endpoints_ask(&views->endpoints.known[i]);

		view->known = &views->endpoints.known[i];
		explain_rules(&state->config, &endpoint, view->rules);
		explain_faults(views->faults, views->fault_count, &endpoint, view->faults);
	}
	return NULL;
}

const struct rule *view_rule(const struct views *views, const struct view *view)
{
	for (size_t i = 0; i < views->state->config.rule_count; i++) {
		if (view->rules[i].verdict == EXPLAIN_APPLIES)
			return &views->state->config.rules[i];
	}
	return NULL;
}

static bool explanations_are_equal(const struct explanation *a, const struct explanation *b,
		size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (a[i].verdict != b[i].verdict || strcmp(a[i].why, b[i].why) != 0)
			return false;
	}
	return true;
}

bool views_are_alike(const struct views *views, const struct view *a, const struct view *b)
{
	return a->known->is_lookup == b->known->is_lookup &&
			strcmp(a->known->host, b->known->host) == 0 &&
			explanations_are_equal(a->rules, b->rules,
					views->state->config.rule_count) &&
			explanations_are_equal(a->faults, b->faults, views->fault_count);
}

static bool cell_is_of(const struct cell_key *key, const struct known_endpoint *known)
{
	if ((key->kind == CELL_LOOKUP) != known->is_lookup)
		return false;
	if (key->host[0] && known->host[0] && strcmp(key->host, known->host) != 0)
		return false;
	return key->address.family == 0 || (key->port == known->port &&
			address_equals(&key->address, &known->address));
}

bool view_circuit(const struct views *views, const struct view *view, struct cell_snapshot *ret)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	size_t count = state_cells(views->state, clock_now_ns(), cells);
	const struct rule *rule = view_rule(views, view);

	for (size_t i = 0; rule && i < count; i++) {
		if (strcmp(cells[i].key.name, rule->name) != 0 ||
				!cell_is_of(&cells[i].key, view->known))
			continue;
		*ret = cells[i];
		return true;
	}
	return false;
}
