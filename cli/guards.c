/* SPDX-License-Identifier: MIT */
#include "cli/guards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/label.h"
#include "cli/terminal.h"
#include "core/clock.h"

void guards_begin(struct guards *guards, const struct config *config, struct segment *segment)
{
	*guards = (struct guards){ .config = config, .has_cells = segment };
	if (!segment)
		return;
	guards->cells = calloc(SEGMENT_CELLS, sizeof(*guards->cells));
	if (!guards->cells)
		terminal_die_without_memory();
	for (uint32_t i = 0; i < SEGMENT_CELLS; i++) {
		struct cell_snapshot *cell = &guards->cells[guards->cell_count];

		if (snapshot_take(segment, i, clock_now_ns(), cell) &&
				cell->key.kind == CELL_CONNECTION)
			guards->cell_count++;
	}
}

void guards_finish(struct guards *guards)
{
	free(guards->cells);
	*guards = (struct guards){ 0 };
}

/* The first rule that matches, exclusions too. */
static const struct rule *first_rule(const struct config *config, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		if (target_matches(&config->rules[i].target, endpoint))
			return &config->rules[i];
	}
	return NULL;
}

static struct endpoint endpoint_of(const struct connection *connection, const char *host)
{
	return (struct endpoint){
		.host = host,
		.address = &connection->address,
		.port = connection->port,
	};
}

/* The name that a circuit is under, or NULL where that is an address. */
static const char *cell_name(const struct cell_snapshot *cell)
{
	struct address address;

	if (cell->key.host[0] == '\0' || address_parse(cell->key.host, &address))
		return NULL;
	return cell->key.host;
}

/* Would the process have chosen this rule for the connection, if it had resolved that name? */
static bool rule_is_chosen(const struct guards *guards, const struct connection *connection,
		const struct cell_snapshot *cell)
{
	struct endpoint endpoint = endpoint_of(connection, cell_name(cell));
	const struct rule *rule = first_rule(guards->config, &endpoint);

	return rule && !rule->target.is_excluded && strcmp(rule->name, cell->key.name) == 0;
}

static bool cell_is_of(const struct cell_snapshot *cell, const struct connection *connection)
{
	return cell->key.address.family != 0 && cell->key.port == connection->port &&
			address_equals(&cell->key.address, &connection->address);
}

/* The circuit of this very address. */
static const struct cell_snapshot *find_cell(const struct guards *guards,
		const struct connection *connection)
{
	for (size_t i = 0; i < guards->cell_count; i++) {
		const struct cell_snapshot *cell = &guards->cells[i];

		if (cell_is_of(cell, connection) && rule_is_chosen(guards, connection, cell))
			return cell;
	}
	return NULL;
}

/* A circuit without an address (per=host, per=rule) that may be the connection's: its rule matches
 * the address, or else goes by names, and which name it was nobody kept. */
static const struct cell_snapshot *find_wide_cell(const struct guards *guards,
		const struct connection *connection, bool *ret_is_sure)
{
	struct endpoint endpoint = endpoint_of(connection, NULL);
	const struct rule *by_address = first_rule(guards->config, &endpoint);
	const struct cell_snapshot *found = NULL;

	for (size_t i = 0; i < guards->cell_count; i++) {
		const struct cell_snapshot *cell = &guards->cells[i];
		const struct rule *rule = rule_find(guards->config->rules,
				guards->config->rule_count, cell->key.name);

		if (cell->key.address.family != 0 || !rule)
			continue;
		*ret_is_sure = rule == by_address;
		if (*ret_is_sure)
			return cell;
		if (target_wants_names(&rule->target) &&
				connection->port >= rule->target.port_low &&
				connection->port <= rule->target.port_high)
			found = cell;
	}
	return found;
}

static bool describe_cell(const struct cell_snapshot *cell, const char *how, char *ret)
{
	char target[LABEL_SIZE], state[LABEL_SIZE];

	label_target(cell, target);
	label_state(cell, state);
	snprintf(ret, GUARDS_TEXT_SIZE, "%s %s (%.300s): %.64s", how, cell->key.name, target,
			state);
	return true;
}

static bool describe_without_cell(const struct guards *guards, const struct rule *rule, char *ret)
{
	if (!rule && !guards->has_cells && guards->config->wants_names) {
		snprintf(ret, GUARDS_TEXT_SIZE,
				"unknown: there are rules by name, and its circuits cannot be read "
				"by this user");
		return false;
	}
	if (!rule) {
		snprintf(ret, GUARDS_TEXT_SIZE, "not guarded: no rule matches");
		return false;
	}
	if (!guards->has_cells) {
		snprintf(ret, GUARDS_TEXT_SIZE,
				"under %s: its circuits cannot be read by this user",
				rule->name);
		return true;
	}
	snprintf(ret, GUARDS_TEXT_SIZE,
			"not guarded: %s matches, but the library did not see it begin",
			rule->name);
	return false;
}

bool guards_describe(const struct guards *guards, const struct connection *connection, char *ret)
{
	struct endpoint endpoint = endpoint_of(connection, NULL);
	const struct rule *rule = first_rule(guards->config, &endpoint);
	const struct cell_snapshot *cell;
	bool is_sure;

	if (connection->is_incoming) {
		snprintf(ret, GUARDS_TEXT_SIZE, "not guarded: accepted, not made, by this host");
		return false;
	}
	if (rule && rule->target.is_excluded) {
		snprintf(ret, GUARDS_TEXT_SIZE, "not guarded: %s (%.255s) keeps it out",
				rule->name, rule->target.text);
		return false;
	}
	cell = find_cell(guards, connection);
	if (cell)
		return describe_cell(cell, "under", ret);
	cell = find_wide_cell(guards, connection, &is_sure);
	if (cell)
		return describe_cell(cell, is_sure ? "under" : "perhaps under", ret);
	return describe_without_cell(guards, rule, ret);
}
