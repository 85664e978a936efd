/* SPDX-License-Identifier: MIT */
#include "cli/json.h"

#include <stdio.h>

#include "cli/faults.h"
#include "cli/label.h"
#include "cli/member.h"
#include "cli/rules.h"
#include "cli/terminal.h"
#include "core/clock.h"

static json_t *totals_object(const struct cell_snapshot *cell)
{
	json_t *object = member_checked(json_object());

	for (int i = 0; i < CELL_TOTAL_COUNT; i++)
		member_set_number(object, cell_total_name((enum cell_total)i), cell->totals[i]);
	return object;
}

static json_t *latency_object(const struct histogram_summary *latency)
{
	json_t *object = member_checked(json_object());

	member_set_real(object, "mean", latency->mean_ms);
	member_set_real(object, "p50", latency->p50_ms);
	member_set_real(object, "p90", latency->p90_ms);
	member_set_real(object, "p99", latency->p99_ms);
	member_set_real(object, "p99_5", latency->p99_5_ms);
	member_set_real(object, "max", latency->max_ms);
	return object;
}

/* What rules say is each process's own. */
static json_t *concurrency_object(const struct cell_snapshot *cell)
{
	json_t *object = member_checked(json_object());

	member_set_truth(object, "by_hand", cell->concurrency != 0);
	if (cell->concurrency == 0 || cell->concurrency == CELL_UNLIMITED)
		member_set_null(object, "limit");
	else
		member_set_number(object, "limit", cell->concurrency);
	return object;
}

static json_t *cell_object(const struct cell_snapshot *cell)
{
	json_t *object = member_checked(json_object());
	char text[LABEL_SIZE];

	member_set_text(object, "name", cell->key.name);
	member_set_text(object, "target", label_target(cell, text));
	member_set_text(object, "host", cell->key.host);
	member_set_text(object, "address", label_address(cell, text));
	member_set_number(object, "port", cell->key.port);
	member_set_text(object, "kind", label_kind(cell->key.kind == CELL_LOOKUP));
	member_set_text(object, "state", circuit_state_name(cell->state));
	member_set_text(object, "forced", label_force(cell->force));
	member_set_number(object, "requests", cell->requests);
	member_set_number(object, "errors", cell->errors);
	member_set_number(object, "error_percent", cell->error_percent);
	if (cell->has_retry)
		member_set_number(object, "retry_in_ms", cell->retry_in_ms);
	else
		member_set_null(object, "retry_in_ms");
	member_set_number(object, "in_flight", cell->in_flight);
	member_set(object, "concurrency", concurrency_object(cell));
	member_set(object, "totals", totals_object(cell));
	member_set(object, "latency_ms", latency_object(&cell->latency));
	return object;
}

static json_t *cells_array(const struct state *state, uint64_t now_ns)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	size_t count = state_cells(state, now_ns, cells);
	json_t *array = member_checked(json_array());

	for (size_t i = 0; i < count; i++)
		member_append(array, cell_object(&cells[i]));
	return array;
}

static json_t *rules_array(const struct state *state)
{
	static struct known_rule rules[RULES_MAX];
	size_t count = rules_gather(state, rules);
	json_t *array = member_checked(json_array());

	for (size_t i = 0; i < count; i++) {
		json_t *object = member_checked(json_object());

		member_set_text(object, "name", rules[i].name);
		member_set_number(object, "matched", rules[i].matched);
		if (rules[i].error[0] != '\0')
			member_set_text(object, "error", rules[i].error);
		else
			member_set_null(object, "error");
		member_append(array, object);
	}
	return array;
}

static json_t *notes_array(const struct state *state)
{
	static char notes[STATE_NOTES_MAX][STATE_NOTE_SIZE];
	size_t count = state_notes(state, notes);
	json_t *array = member_checked(json_array());

	for (size_t i = 0; i < count; i++)
		member_append(array, member_text(notes[i]));
	return array;
}

static json_t *suppressed_object(const struct fault_view *view)
{
	json_t *object = member_checked(json_object());

	for (int reason = FAULT_STRIKES + 1; reason < FAULT_REASON_COUNT; reason++)
		member_set_number(object, fault_reason_name((enum fault_reason)reason),
				view->counts.suppressed[reason]);
	return object;
}

static json_t *fault_object(const struct fault_view *view, uint64_t now_ns)
{
	json_t *object = member_checked(json_object());

	member_set_text(object, "name", view->name);
	member_set_text(object, "rule", view->text);
	member_set_truth(object, "added", view->is_added);
	member_set_number(object, "began_ms_ago",
			clock_elapsed_ns(view->began_ns, now_ns) / 1000000u);
	if (view->is_added)
		member_set_number(object, "ends_in_ms", view->is_over ? 0
				: clock_elapsed_ns(now_ns, view->ends_ns) / 1000000u);
	else
		member_set_null(object, "ends_in_ms");
	member_set_number(object, "connections", view->connections);
	member_set_number(object, "seen", view->counts.seen);
	member_set_number(object, "matched", view->counts.matched);
	member_set_number(object, "injected", view->counts.injected);
	member_set_number(object, "unreported", view->counts.unreported);
	member_set(object, "suppressed", suppressed_object(view));
	return object;
}

static json_t *faults_array(const struct state *state, uint64_t now_ns)
{
	static struct fault_view views[FAULT_TABLE_SIZE];
	size_t count = faults_gather(state, now_ns, views);
	json_t *array = member_checked(json_array());

	for (size_t i = 0; i < count; i++)
		member_append(array, fault_object(&views[i], now_ns));
	return array;
}

json_t *json_fault_list(const struct state *state, uint64_t now_ns)
{
	json_t *object = member_checked(json_object());

	member_set_number(object, "version", 1);
	member_set(object, "faults", faults_array(state, now_ns));
	return object;
}

json_t *json_status(const struct state *state, uint64_t now_ns)
{
	json_t *object = member_checked(json_object());

	member_set_number(object, "version", 1);
	member_set_text(object, "segment", state->path[0] ? state->path : "private");
	member_set(object, "cells", cells_array(state, now_ns));
	member_set(object, "rules", rules_array(state));
	member_set(object, "faults", faults_array(state, now_ns));
	member_set_number(object, "overflow", state_overflow(state));
	member_set(object, "notes", notes_array(state));
	return object;
}

json_t *json_event(const struct event *event, const char *time)
{
	json_t *object = member_checked(json_object());

	member_set_number(object, "sequence", event->sequence);
	member_set_text(object, "time", time);
	member_set_text(object, "event", event_kind_name((enum event_kind)event->kind));
	member_set_text(object, "name", event->name);
	member_set_text(object, "target", event->target);
	member_set_text(object, "kind", label_kind(event->is_lookup));
	member_set_number(object, "requests", event->requests);
	member_set_number(object, "errors", event->errors);
	if (event->kind == EVENT_FORCED)
		member_set_text(object, "forced", label_force((enum force)event->detail));
	if (event->kind == EVENT_INJECTED)
		member_set_number(object, "injected", event->detail);
	member_set_number(object, "pid", event->pid);
	return object;
}

void json_print(json_t *object)
{
	if (json_dumpf(object, stdout, JSON_REAL_PRECISION(9)) != 0 && !ferror(stdout))
		terminal_die_without_memory();
	putchar('\n');
	json_decref(object);
}
