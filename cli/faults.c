/* SPDX-License-Identifier: MIT */
#include "cli/faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/fault_counts.h"
#include "core/clock.h"
#include "core/text.h"

static const struct column fault_columns[] = {
	{ "FAULT", false }, { "RULE", false }, { "BEGAN", true }, { "ENDS IN", true },
	{ "SEEN", true }, { "MATCHED", true }, { "INJECTED", true }, { "SUPPRESSED", false },
};

static int compare_views(const void *a, const void *b)
{
	const struct fault_view *first = a, *second = b;
	int order = strcmp(first->name, second->name);

	if (order != 0)
		return order;
	return (first->began_ns > second->began_ns) - (first->began_ns < second->began_ns);
}

/* Rules of one run begin one after the other, as it starts. */
#define ONE_START_NS 1000000000u

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns <= now_ns && now_ns - then_ns <= FAULT_FORGOTTEN_NS;
}

static uint64_t latest_start(const struct state *state, uint64_t now_ns)
{
	struct fault_view view;
	uint64_t latest_ns = 0;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (fault_table_read(&state->segment->faults, i, now_ns, &view) && !view.is_added &&
				view.began_ns > latest_ns && view.began_ns <= now_ns)
			latest_ns = view.began_ns;
	}
	return latest_ns;
}

/* Is it of a program that runs, or of those that did so last? */
static bool is_present(const struct fault_view *view, const struct fault_record *record,
		uint64_t latest_ns, uint64_t now_ns)
{
	if (view->is_added)
		return !view->is_over || is_recent(view->ends_ns, now_ns);
	return (record && !fault_record_is_forgotten(record, now_ns)) ||
			is_recent(view->began_ns, now_ns) ||
			view->began_ns + ONE_START_NS >= latest_ns;
}

static size_t gather(const struct state *state, uint64_t now_ns, bool is_all,
		struct fault_view *ret)
{
	uint64_t latest_ns = state->segment ? latest_start(state, now_ns) : 0;
	size_t count = 0;

	for (uint32_t i = 0; state->segment && i < FAULT_TABLE_SIZE; i++) {
		struct fault_table *table = &state->segment->faults;
		struct fault_view *view = &ret[count];

		if (fault_table_read(table, i, now_ns, view) && (is_all || is_present(view,
				fault_table_at(table, i, view->key), latest_ns, now_ns)))
			count++;
	}
	qsort(ret, count, sizeof(*ret), compare_views);
	return count;
}

size_t faults_gather(const struct state *state, uint64_t now_ns, struct fault_view *ret)
{
	return gather(state, now_ns, true, ret);
}

const char *faults_span(uint64_t ns, char *ret)
{
	snprintf(ret, FAULTS_TEXT_SIZE, "%" PRIu64 ".%" PRIu64 "s", ns / 1000000000u,
			ns % 1000000000u / 100000000u);
	return ret;
}

const char *faults_ends_in(const struct fault_view *view, uint64_t now_ns, char *ret)
{
	if (view->is_over)
		text_copy(ret, FAULTS_TEXT_SIZE, "over");
	else if (!view->is_added)
		text_copy(ret, FAULTS_TEXT_SIZE, "-");
	else
		faults_span(clock_elapsed_ns(now_ns, view->ends_ns), ret);
	return ret;
}

static void add_view(struct columns *columns, const struct fault_view *view, uint64_t now_ns)
{
	const struct fault_counts *counts = &view->counts;
	char text[FAULT_COUNTS_SIZE];

	columns_add(columns, "%s", view->name);
	columns_add(columns, "%s", view->text);
	columns_add(columns, "%s ago",
			faults_span(clock_elapsed_ns(view->began_ns, now_ns), text));
	columns_add(columns, "%s", faults_ends_in(view, now_ns, text));
	columns_add(columns, "%" PRIu64, counts->seen);
	columns_add(columns, "%" PRIu64, counts->matched);
	columns_add(columns, "%" PRIu64, counts->injected);
	fault_counts_reasons(counts, text);
	columns_add(columns, "%s", text[0] ? text : "-");
}

size_t faults_print(const struct state *state, bool shows_all)
{
	static struct fault_view views[FAULT_TABLE_SIZE];
	uint64_t now_ns = clock_now_ns();
	size_t total = faults_gather(state, now_ns, views);
	size_t count = shows_all ? total : gather(state, now_ns, false, views);
	struct columns columns;

	columns_init(&columns, fault_columns, sizeof(fault_columns) / sizeof(fault_columns[0]));
	for (size_t i = 0; i < count; i++)
		add_view(&columns, &views[i], now_ns);
	columns_print(&columns);
	columns_finish(&columns);
	if (count < total)
		printf("%zu older fault rule%s not shown (--all shows %s)\n", total - count,
				total - count == 1 ? "" : "s", total - count == 1 ? "it" : "them");
	return total;
}
