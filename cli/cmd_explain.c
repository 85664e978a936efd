/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/describe.h"
#include "cli/json.h"
#include "cli/label.h"
#include "cli/member.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "cli/views.h"
#include "core/fault_text.h"

enum { EXPLAIN_JSON, EXPLAIN_OPTION_COUNT };

static const struct command_option explain_options[] = {
	[EXPLAIN_JSON] = { "--json", .has_value = false },
};

static const struct column break_columns[] = {
	{ "BREAK", false }, { "TARGET", false }, { "VERDICT", false }, { "WHY", false },
	{ "SETTINGS", false },
};

static const struct column fault_columns[] = {
	{ "FAULT", false }, { "RULE", false }, { "VERDICT", false }, { "WHY", false },
};

#define WIDTH(columns) (sizeof(columns) / sizeof((columns)[0]))

static void print_heading(const struct views *views, size_t first, const bool alike[])
{
	const struct known_endpoint *known = views->views[first].known;
	const char *separator = known->host[0] ? " at " : " to ";
	char address[64];

	if (known->is_lookup) {
		printf("lookups of %s\n", known->host);
		return;
	}
	printf("connections");
	if (known->host[0])
		printf(" to %s:%u", known->host, known->port);
	for (size_t i = first; i < views->count; i++) {
		if (!alike[i] || views->views[i].known->address.family == 0)
			continue;
		printf("%s%s", separator, address_format(&views->views[i].known->address, address));
		separator = ", ";
	}
	if (!known->host[0])
		printf(", port %u", known->port);
	putchar('\n');
}

static void print_rules(const struct views *views, const struct view *view)
{
	const struct config *config = &views->state->config;
	char settings[DESCRIBE_SIZE];
	struct columns columns;

	columns_init(&columns, break_columns, WIDTH(break_columns));
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct rule *rule = &config->rules[i];

		describe_settings(&rule->settings, settings);
		columns_add(&columns, "%s", rule->name);
		columns_add(&columns, "%s", rule->target.text);
		columns_add(&columns, "%s", explain_verdict_name(view->rules[i].verdict));
		columns_add(&columns, "%s", view->rules[i].why);
		columns_add(&columns, "%s", rule->target.is_excluded ? "-" :
				settings[0] ? settings : "the defaults");
	}
	columns_print(&columns);
	columns_finish(&columns);
	if (!view_rule(views, view))
		puts("not guarded: no breaker rule applies");
}

static void print_faults(const struct views *views, const struct view *view)
{
	char rule[FAULT_TEXT_SIZE];
	struct columns columns;

	columns_init(&columns, fault_columns, WIDTH(fault_columns));
	for (size_t i = 0; i < views->fault_count; i++) {
		fault_describe(&views->faults[i], rule, sizeof(rule));
		columns_add(&columns, "%s", views->faults[i].name);
		columns_add(&columns, "%s", rule);
		columns_add(&columns, "%s", explain_verdict_name(view->faults[i].verdict));
		columns_add(&columns, "%s%s", view->faults[i].why,
				i < views->own_fault_count ? "" : "; added by hand");
	}
	columns_print(&columns);
	columns_finish(&columns);
}

static void print_circuits(const struct views *views, size_t first, const bool alike[])
{
	struct cell_snapshot cell;
	char label[LABEL_SIZE], text[LABEL_SIZE], by_hand[LABEL_SIZE];

	for (size_t i = first; i < views->count; i++) {
		if (alike[i] && view_circuit(views, &views->views[i], &cell))
			printf("circuit %s: %s%s\n", label_cell(&cell, label),
					label_state(&cell, text), label_by_hand(&cell, by_hand));
	}
}

static void print_views(const struct views *views)
{
	bool is_shown[ENDPOINTS_MAX] = { false };

	for (size_t first = 0; first < views->count; first++) {
		bool alike[ENDPOINTS_MAX] = { false };

		if (is_shown[first])
			continue;
		for (size_t i = first; i < views->count; i++) {
			alike[i] = views_are_alike(views, &views->views[first], &views->views[i]);
			is_shown[i] |= alike[i];
		}
		if (first > 0)
			putchar('\n');
		print_heading(views, first, alike);
		print_rules(views, &views->views[first]);
		print_circuits(views, first, alike);
		print_faults(views, &views->views[first]);
	}
}

static json_t *rules_array(const struct views *views, const struct view *view)
{
	const struct config *config = &views->state->config;
	json_t *array = member_checked(json_array());
	char settings[DESCRIBE_SIZE];

	for (size_t i = 0; i < config->rule_count; i++) {
		const struct rule *rule = &config->rules[i];
		json_t *object = member_checked(json_object());

		member_set_text(object, "name", rule->name);
		member_set_text(object, "target", rule->target.text);
		member_set_text(object, "verdict", explain_verdict_name(view->rules[i].verdict));
		member_set_text(object, "why", view->rules[i].why);
		member_set_text(object, "settings", describe_settings(&rule->settings, settings));
		member_append(array, object);
	}
	return array;
}

static json_t *faults_array(const struct views *views, const struct view *view)
{
	json_t *array = member_checked(json_array());
	char rule[FAULT_TEXT_SIZE];

	for (size_t i = 0; i < views->fault_count; i++) {
		json_t *object = member_checked(json_object());

		fault_describe(&views->faults[i], rule, sizeof(rule));
		member_set_text(object, "name", views->faults[i].name);
		member_set_text(object, "rule", rule);
		member_set_truth(object, "added", i >= views->own_fault_count);
		member_set_text(object, "verdict", explain_verdict_name(view->faults[i].verdict));
		member_set_text(object, "why", view->faults[i].why);
		member_append(array, object);
	}
	return array;
}

static json_t *view_object(const struct views *views, const struct view *view)
{
	const struct known_endpoint *known = view->known;
	const struct rule *rule = view_rule(views, view);
	json_t *object = member_checked(json_object());
	struct cell_snapshot cell;
	char address[64] = "";

	if (known->address.family)
		address_format(&known->address, address);
	member_set_text(object, "kind", label_kind(known->is_lookup));
	member_set_text(object, "host", known->host);
	member_set_text(object, "address", address);
	member_set_number(object, "port", known->port);
	if (rule)
		member_set_text(object, "breaker", rule->name);
	else
		member_set_null(object, "breaker");
	if (view_circuit(views, view, &cell))
		member_set_text(object, "state", circuit_state_name(cell.state));
	else
		member_set_null(object, "state");
	member_set(object, "rules", rules_array(views, view));
	member_set(object, "faults", faults_array(views, view));
	return object;
}

#define NOTES_MAX (STATE_NOTES_MAX + 8)

/* What bears on all of it. */
static size_t gather_notes(const struct views *views, char (*ret)[STATE_NOTE_SIZE])
{
	static const struct { const char *variable; const char *meaning; } switches[] = {
		{ "SHUNT_OFF", "in this environment nothing of this is in effect" },
		{ "SHUNT_PROC", "the rules are only in programs of these names" },
		{ "SHUNT_SKIP", "the rules are not in programs of these names" },
	};
	size_t count = 0;

	if (views->endpoints.note[0])
		snprintf(ret[count++], STATE_NOTE_SIZE, "%s", views->endpoints.note);
	for (size_t i = 0; i < WIDTH(switches); i++) {
		const char *value = getenv(switches[i].variable);

		if (value && value[0] && strcmp(value, "0") != 0)
			snprintf(ret[count++], STATE_NOTE_SIZE, "%s=%.200s: %s",
					switches[i].variable, value, switches[i].meaning);
	}
	if (views->state->config.observe)
		snprintf(ret[count++], STATE_NOTE_SIZE,
				"SHUNT_MODE=observe: nothing is refused, nothing injected");
	for (size_t i = 0; i < views->state->config.problem_count && i < CONFIG_MAX_PROBLEMS; i++)
		snprintf(ret[count++], STATE_NOTE_SIZE, "left out: %s",
				views->state->config.problems[i].text);
	return count;
}

static void print_json(const struct views *views, const char *operand,
		char (*notes)[STATE_NOTE_SIZE], size_t note_count)
{
	json_t *object = member_checked(json_object());
	json_t *endpoints = member_checked(json_array()), *array = member_checked(json_array());

	for (size_t i = 0; i < views->count; i++)
		member_append(endpoints, view_object(views, &views->views[i]));
	for (size_t i = 0; i < note_count; i++)
		member_append(array, member_text(notes[i]));
	member_set_number(object, "version", 1);
	member_set_text(object, "asked", operand);
	member_set(object, "endpoints", endpoints);
	member_set(object, "notes", array);
	json_print(object);
}

static int explain(const char *operand, bool as_json)
{
	static char notes[NOTES_MAX][STATE_NOTE_SIZE];
	static struct views views;
	const char *expected = views_make(&views, state_open(), operand);
	size_t note_count;

	if (expected) {
		terminal_complain("explain: expected %s, got '%s'", expected, operand);
		return EXIT_OWN_FAILURE;
	}
	note_count = gather_notes(&views, notes);
	if (as_json) {
		print_json(&views, operand, notes, note_count);
		return 0;
	}
	print_views(&views);
	for (size_t i = 0; i < note_count; i++)
		printf("note: %s\n", notes[i]);
	return 0;
}

int cmd_explain(int argc, char *argv[])
{
	struct command_options options;
	bool is_set[EXPLAIN_OPTION_COUNT] = { false };
	const char *value;
	int option;

	command_options_init(&options, explain_options, EXPLAIN_OPTION_COUNT, argc, argv);
	while ((option = command_options_next(&options, &value)) >= 0)
		is_set[option] = true;
	if (option == COMMAND_OPTIONS_BAD ||
			!command_operands_fit(&options, 1, 1, "HOST:PORT or dns:NAME"))
		return EXIT_OWN_FAILURE;
	return explain(argv[options.next], is_set[EXPLAIN_JSON]);
}
