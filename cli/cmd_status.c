/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/faults.h"
#include "cli/json.h"
#include "cli/rules.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "cli/label.h"
#include "core/clock.h"

#define WATCH_INTERVAL_MS 1000

enum { STATUS_JSON, STATUS_WATCH, STATUS_ALL, STATUS_OPTION_COUNT };

static const struct command_option status_options[] = {
	[STATUS_JSON] = { "--json", .has_value = false },
	[STATUS_WATCH] = { "--watch", .has_value = false },
	[STATUS_ALL] = { "--all", .has_value = false },
};

static const struct column cell_columns[] = {
	{ "NAME", false }, { "TARGET", false }, { "ADDRESS", false }, { "KIND", false },
	{ "STATE", false }, { "REQUESTS", true }, { "ERRORS", true }, { "ERR%", true },
	{ "RETRY", true }, { "IN FLIGHT", true },
};

static const struct column rule_columns[] = {
	{ "RULE", false }, { "MATCHED", true }, { "NOTE", false },
};

#define WIDTH(columns) (sizeof(columns) / sizeof((columns)[0]))

/* Nothing to see: closed by itself, no call in its window or in flight, nothing set by hand. */
static bool cell_is_idle(const struct cell_snapshot *cell)
{
	return cell->state == CIRCUIT_CLOSED && cell->force == FORCE_NONE &&
			cell->requests == 0 && cell->in_flight == 0 && cell->concurrency == 0;
}

static void add_cell(struct columns *columns, const struct cell_snapshot *cell)
{
	char text[LABEL_SIZE];

	columns_add(columns, "%s", cell->key.name);
	columns_add(columns, "%s", label_target(cell, text));
	label_address(cell, text);
	columns_add(columns, "%s", text[0] ? text : "-");
	columns_add(columns, "%s", label_kind(cell->key.kind == CELL_LOOKUP));
	columns_add(columns, "%s", label_state(cell, text));
	columns_add(columns, "%" PRIu64, cell->requests);
	columns_add(columns, "%" PRIu64, cell->errors);
	columns_add(columns, "%" PRIu32, cell->error_percent);
	columns_add(columns, "%s", label_retry(cell, text));
	columns_add(columns, "%s", label_in_flight(cell, text));
}

static void print_totals(const struct cell_snapshot *cells, size_t count)
{
	const char *separator = "totals: ";

	for (int total = 0; total < CELL_TOTAL_COUNT; total++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < count; i++)
			sum += cells[i].totals[total];
		if (sum == 0)
			continue;
		printf("%s%" PRIu64 " %s", separator, sum, cell_total_name((enum cell_total)total));
		separator = ", ";
	}
	if (separator[0] == ',')
		putchar('\n');
}

static void print_cells(const struct state *state, bool shows_all)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	size_t count = state_cells(state, clock_now_ns(), cells);
	size_t idle = 0;
	struct columns columns;

	columns_init(&columns, cell_columns, WIDTH(cell_columns));
	for (size_t i = 0; i < count; i++) {
		if (!shows_all && cell_is_idle(&cells[i]))
			idle++;
		else
			add_cell(&columns, &cells[i]);
	}
	columns_print(&columns);
	columns_finish(&columns);
	if (idle > 0)
		printf("%zu idle circuit%s not shown (--all shows %s)\n", idle,
				idle == 1 ? "" : "s",
				idle == 1 ? "it" : "them");
	if (count == 0 && state->segment)
		puts("no circuit yet: no call has been made under a rule");
	print_totals(cells, count);
}

static void print_rules(const struct state *state)
{
	static struct known_rule rules[RULES_MAX];
	size_t count = rules_gather(state, rules);
	struct columns columns;

	columns_init(&columns, rule_columns, WIDTH(rule_columns));
	for (size_t i = 0; i < count; i++) {
		const char *matches = rules[i].matched ? "-" : "never matched";

		columns_add(&columns, "%s", rules[i].name);
		columns_add(&columns, "%" PRIu64, rules[i].matched);
		columns_add(&columns, "%s", rules[i].error[0] ? rules[i].error : matches);
	}
	if (count > 0)
		putchar('\n');
	columns_print(&columns);
	columns_finish(&columns);
}

static void print_faults(const struct state *state, bool shows_all)
{
	struct fault_view first;
	bool has_some = false;

	for (uint32_t i = 0; state->segment && i < FAULT_TABLE_SIZE && !has_some; i++)
		has_some = fault_table_read(&state->segment->faults, i, clock_now_ns(), &first);
	if (has_some)
		putchar('\n');
	faults_print(state, shows_all);
}

static void print_notes(const struct state *state)
{
	static char notes[STATE_NOTES_MAX][STATE_NOTE_SIZE];
	size_t count = state_notes(state, notes);
	uint64_t overflow = state_overflow(state);

	for (size_t i = 0; i < count; i++)
		printf("note: %s\n", notes[i]);
	if (overflow > 0)
		printf("note: %" PRIu64 " calls passed without a breaker, as all %u cells were "
				"busy; use per=host, per=rule or narrower targets\n",
				overflow, SEGMENT_CELLS);
}

static void print_status(const struct state *state, bool as_json, bool shows_all)
{
	if (as_json) {
		json_print(json_status(state, clock_now_ns()));
		return;
	}
	print_cells(state, shows_all);
	print_rules(state);
	print_faults(state, shows_all);
	print_notes(state);
}

static int watch(struct state *state, bool as_json, bool shows_all)
{
	bool redraws = !as_json && terminal_is_interactive();

	for (;;) {
		if (redraws)
			terminal_clear();
		print_status(state, as_json, shows_all);
		if (!as_json && !redraws)
			putchar('\n');
		if (!terminal_flush())
			return EXIT_OWN_FAILURE;
		if (!terminal_wait(WATCH_INTERVAL_MS))
			return 0;
		state_refresh(state);
	}
}

int cmd_status(int argc, char *argv[])
{
	struct command_options options;
	bool is_set[STATUS_OPTION_COUNT] = { false };
	const char *value;
	struct state *state;
	int option;

	command_options_init(&options, status_options, STATUS_OPTION_COUNT, argc, argv);
	while ((option = command_options_next(&options, &value)) >= 0)
		is_set[option] = true;
	if (option == COMMAND_OPTIONS_BAD || !command_operands_fit(&options, 0, 0, "only options"))
		return EXIT_OWN_FAILURE;
	state = state_open();
	if (is_set[STATUS_WATCH])
		return watch(state, is_set[STATUS_JSON], is_set[STATUS_ALL]);
	print_status(state, is_set[STATUS_JSON], is_set[STATUS_ALL]);
	return 0;
}
