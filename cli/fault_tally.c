/* SPDX-License-Identifier: MIT */
#include "cli/fault_tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/state.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/fault_text.h"

static uint64_t load_key(const struct fault_record *record)
{
	return atomic_load_explicit(&record->key, memory_order_relaxed);
}

static bool read_added(const struct fault_tally *tally, uint32_t index, struct fault_view *ret)
{
	return fault_table_read(tally->table, index, clock_now_ns(), ret) && ret->is_added;
}

/* False where there is no room for one, and must be. */
static bool claim_records(struct fault_tally *tally, uint64_t run, bool is_required)
{
	const struct config *config = tally->config;
	char text[FAULT_TEXT_SIZE];

	for (size_t i = 0; i < config->fault_count && i < FAULT_TABLE_SIZE; i++) {
		const struct fault *fault = &config->faults[i];

		if (fault->target.is_excluded)
			continue;
		fault_describe(fault, text, sizeof(text));
		tally->records[i] = fault_table_claim(tally->table, fault, text, run,
				clock_now_ns());
		if (tally->records[i]) {
			tally->keys[i] = load_key(tally->records[i]);
		} else if (is_required) {
			terminal_complain("run: --require-hits: expected room to count %s, got "
					  "none, as %d other rules are; see 'shunt fault list'",
					fault->name, FAULT_TABLE_SIZE);
			return false;
		}
	}
	return true;
}

bool fault_tally_begin(struct fault_tally *tally, uint64_t run, bool is_required)
{
	const struct state *state = state_open();
	const char *why = state->reason;
	struct segment *segment = NULL;

	if (state->path[0])
		segment = segment_open(state->path, true, &why);
	if (!segment && is_required)
		terminal_complain("run: --require-hits: expected a segment in which hits can be "
				  "counted, got none: %s", state->reason[0] ? state->reason : why);
	if (!segment)
		return !is_required;
	tally->table = &segment->faults;
	tally->began_ns = clock_now_ns();
	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (!read_added(tally, i, &tally->added[i]))
			tally->added[i].key = 0;
	}
	return claim_records(tally, run, is_required);
}

static void append(char line[FAULT_TALLY_SIZE], const char *name, const char *text)
{
	size_t length = strlen(line);

	snprintf(line + length, FAULT_TALLY_SIZE - length, "%s%s: %s", length ? "; " : "", name,
			text);
}

static void tell_own(const struct fault_tally *tally, size_t index, char line[FAULT_TALLY_SIZE],
		struct fault_sum *sum)
{
	const struct fault *fault = &tally->config->faults[index];
	struct fault_record *record = tally->records[index];
	struct fault_counts counts;
	char text[FAULT_COUNTS_SIZE];

	snprintf(text, sizeof(text), "not counted, as %d other rules were", FAULT_TABLE_SIZE);
	if (record && load_key(record) == tally->keys[index]) {
		counts = fault_record_counts(record);
		fault_counts_describe(&counts, text);
		sum->injected += counts.injected;
		sum->unreported += counts.unreported;
		if (tally->is_last)
			fault_record_forget(record);
	}
	/* Who has such a rule has another segment. */
	if (fault->has_uid && fault->uid != geteuid())
		snprintf(text, sizeof(text), "not known, as processes of user %" PRIu32
				" count by themselves", fault->uid);
	append(line, fault->name, text);
}

/* What it has done since the run began. */
static uint64_t added_since(const struct fault_tally *tally, uint32_t index,
		const struct fault_view *view)
{
	const struct fault_view *before = &tally->added[index];

	if (before->key != view->key || before->began_ns != view->began_ns)
		return view->counts.injected;
	return view->counts.injected - before->counts.injected;
}

static void tell_added(const struct fault_tally *tally, char line[FAULT_TALLY_SIZE],
		struct fault_sum *sum)
{
	char name[RULE_NAME_SIZE + 16], text[64];
	struct fault_view view;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		uint64_t injected = 0;

		if (read_added(tally, i, &view) &&
				(!view.is_over || view.ends_ns >= tally->began_ns))
			injected = added_since(tally, i, &view);
		if (injected == 0)
			continue;
		snprintf(name, sizeof(name), "%s, added by hand", view.name);
		snprintf(text, sizeof(text), "%" PRIu64 " injected meanwhile, in all processes",
				injected);
		append(line, name, text);
		sum->added += injected;
	}
}

struct fault_sum fault_tally_end(const struct fault_tally *tally, char line[FAULT_TALLY_SIZE])
{
	struct fault_sum sum = { 0 };

	line[0] = '\0';
	for (size_t i = 0; tally->table && i < tally->config->fault_count && i < FAULT_TABLE_SIZE;
			i++) {
		if (!tally->config->faults[i].target.is_excluded)
			tell_own(tally, i, line, &sum);
	}
	if (tally->table)
		tell_added(tally, line, &sum);
	else
		snprintf(line, FAULT_TALLY_SIZE,
				"what was injected is not known, as no segment could be "
				"shared");
	if (line[0] == '\0')
		snprintf(line, FAULT_TALLY_SIZE, "there was no fault rule");
	return sum;
}
