/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules.h"
#include "cli/terminal.h"
#include "cli/label.h"

static json_t *checked(json_t *value)
{
	if (!value)
		terminal_die_without_memory();
	return value;
}

static void set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, checked(value)) != 0)
		terminal_die_without_memory();
}

/* Names come from environments and files in any encoding; JSON is UTF-8. */
static json_t *text_value(const char *text)
{
	json_t *value = json_string(text);
	char *ascii;

	if (value)
		return value;
	ascii = strdup(text);
	if (!ascii)
		terminal_die_without_memory();
	for (char *byte = ascii; *byte; byte++) {
		if ((unsigned char)*byte >= 0x80)
			*byte = '?';
	}
	value = checked(json_string(ascii));
	free(ascii);
	return value;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	set(object, key, text_value(text));
}

static void set_number(json_t *object, const char *key, uint64_t number)
{
	set(object, key, json_integer(number > LLONG_MAX ? LLONG_MAX : (json_int_t)number));
}

static void set_real(json_t *object, const char *key, double number)
{
	set(object, key, json_real(isfinite(number) ? number : 0));
}

static json_t *totals_object(const struct cell_snapshot *cell)
{
	json_t *object = checked(json_object());

	for (int i = 0; i < CELL_TOTAL_COUNT; i++)
		set_number(object, cell_total_name((enum cell_total)i), cell->totals[i]);
	return object;
}

static json_t *latency_object(const struct histogram_summary *latency)
{
	json_t *object = checked(json_object());

	set_real(object, "mean", latency->mean_ms);
	set_real(object, "p50", latency->p50_ms);
	set_real(object, "p90", latency->p90_ms);
	set_real(object, "p99", latency->p99_ms);
	set_real(object, "p99_5", latency->p99_5_ms);
	set_real(object, "max", latency->max_ms);
	return object;
}

static json_t *cell_object(const struct cell_snapshot *cell)
{
	json_t *object = checked(json_object());
	char text[LABEL_SIZE];

	set_text(object, "name", cell->key.name);
	set_text(object, "target", label_target(cell, text));
	set_text(object, "host", cell->key.host);
	set_text(object, "address", label_address(cell, text));
	set_number(object, "port", cell->key.port);
	set_text(object, "kind", label_kind(cell->key.kind == CELL_LOOKUP));
	set_text(object, "state", circuit_state_name(cell->state));
	set_text(object, "forced", label_force(cell->force));
	set_number(object, "requests", cell->requests);
	set_number(object, "errors", cell->errors);
	set_number(object, "error_percent", cell->error_percent);
	if (cell->has_retry)
		set_number(object, "retry_in_ms", cell->retry_in_ms);
	else
		set(object, "retry_in_ms", json_null());
	set_number(object, "in_flight", cell->in_flight);
	set(object, "totals", totals_object(cell));
	set(object, "latency_ms", latency_object(&cell->latency));
	return object;
}

static void append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) != 0)
		terminal_die_without_memory();
}

static json_t *cells_array(const struct state *state, uint64_t now_ns)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	size_t count = state_cells(state, now_ns, cells);
	json_t *array = checked(json_array());

	for (size_t i = 0; i < count; i++)
		append(array, cell_object(&cells[i]));
	return array;
}

static json_t *rules_array(const struct state *state)
{
	static struct known_rule rules[RULES_MAX];
	size_t count = rules_gather(state, rules);
	json_t *array = checked(json_array());

	for (size_t i = 0; i < count; i++) {
		json_t *object = checked(json_object());

		set_text(object, "name", rules[i].name);
		set_number(object, "matched", rules[i].matched);
		if (rules[i].error[0] != '\0')
			set_text(object, "error", rules[i].error);
		else
			set(object, "error", json_null());
		append(array, object);
	}
	return array;
}

static json_t *notes_array(const struct state *state)
{
	static char notes[STATE_NOTES_MAX][STATE_NOTE_SIZE];
	size_t count = state_notes(state, notes);
	json_t *array = checked(json_array());

	for (size_t i = 0; i < count; i++)
		append(array, text_value(notes[i]));
	return array;
}

json_t *json_status(const struct state *state, uint64_t now_ns)
{
	json_t *object = checked(json_object());

	set_number(object, "version", 1);
	set_text(object, "segment", state->path[0] ? state->path : "private");
	set(object, "cells", cells_array(state, now_ns));
	set(object, "rules", rules_array(state));
	set_number(object, "overflow", state_overflow(state));
	set(object, "notes", notes_array(state));
	return object;
}

json_t *json_event(const struct event *event, const char *time)
{
	json_t *object = checked(json_object());

	set_number(object, "sequence", event->sequence);
	set_text(object, "time", time);
	set_text(object, "event", event_kind_name((enum event_kind)event->kind));
	set_text(object, "name", event->name);
	set_text(object, "target", event->target);
	set_text(object, "kind", label_kind(event->is_lookup));
	set_number(object, "requests", event->requests);
	set_number(object, "errors", event->errors);
	if (event->kind == EVENT_FORCED)
		set_text(object, "forced", label_force((enum force)event->detail));
	set_number(object, "pid", event->pid);
	return object;
}

void json_print(json_t *object)
{
	if (json_dumpf(object, stdout, JSON_REAL_PRECISION(9)) != 0 && !ferror(stdout))
		terminal_die_without_memory();
	putchar('\n');
	json_decref(object);
}
