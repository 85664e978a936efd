/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/rules.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "cli/label.h"
#include "core/breaker.h"
#include "core/control.h"
#include "core/clock.h"
#include "core/settings.h"
#include "core/text.h"

#define LIST_SIZE 256

/* NAME, NAME@ADDRESS or NAME@lookup. */
struct selection {
	char name[CELL_NAME_SIZE];
	const char *place; /* after the @, or NULL */
	bool is_lookup;
	struct address address; /* family 0 for a lookup */
};

struct control {
	const char *command;
	enum { CONTROL_TRIP, CONTROL_RESET, CONTROL_FORCE, CONTROL_SET } action;
	enum force force;
	uint32_t concurrency;
	struct selection selection;
};

static bool selection_parse(const char *command, const char *text, struct selection *ret)
{
	const char *at = strchr(text, '@');
	size_t length = at ? (size_t)(at - text) : strlen(text);

	if (length == 0 || length >= sizeof(ret->name)) {
		terminal_complain("%s: expected the name of a rule, NAME@ADDRESS or NAME@lookup, "
				"got '%s'",
				command, text);
		return false;
	}
	*ret = (struct selection){ .place = at ? at + 1 : NULL };
	memcpy(ret->name, text, length);
	if (!at)
		return true;
	ret->is_lookup = strcmp(ret->place, "lookup") == 0;
	if (ret->is_lookup || address_parse(ret->place, &ret->address))
		return true;
	terminal_complain("%s: expected an IP address or 'lookup' after %s@, got '%s'", command,
			ret->name, ret->place);
	return false;
}

static bool selection_names(const struct selection *selection, const struct cell_snapshot *cell)
{
	return strcmp(selection->name, cell->key.name) == 0;
}

static bool selection_has(const struct selection *selection, const struct cell_snapshot *cell)
{
	if (!selection_names(selection, cell))
		return false;
	if (!selection->place)
		return true;
	if (selection->is_lookup)
		return cell->key.kind == CELL_LOOKUP;
	return memcmp(&selection->address, &cell->key.address, sizeof(selection->address)) == 0;
}

/* By hand, the settings of whoever uses the circuit apply, as far as the cell knows them: those of
 * this shell's environment may be others. */
static struct settings cell_settings(const struct cell *cell)
{
	struct settings settings = settings_default;
	uint32_t sleep_ms = atomic_load_explicit(&cell->sleep_ms, memory_order_relaxed);
	uint32_t lease_ms = atomic_load_explicit(&cell->lease_ms, memory_order_relaxed);

	settings.window = (struct window_shape){
		.span_ns = cell->key.window_span_ns,
		.buckets = cell->key.window_buckets,
		.calls = cell->key.window_calls,
	};
	if (sleep_ms > 0 && sleep_ms <= SETTINGS_MAX_MS)
		settings.sleep_ms = sleep_ms;
	settings.lease_ms = lease_ms <= SETTINGS_MAX_MS ? lease_ms : settings.sleep_ms;
	return settings;
}

static void control_apply(const struct control *control, struct segment *segment, uint32_t index)
{
	struct cell *cell = segment_cell_at(segment, index);
	struct settings settings;
	struct cell_snapshot after;
	char text[LABEL_SIZE];

	if (!cell)
		return;
	settings = cell_settings(cell);
	struct breaker breaker = {
		.cell = cell,
		.settings = &settings,
		.events = &segment->events,
		.pid = (uint32_t)getpid(),
	};
	if (control->action == CONTROL_TRIP)
		control_trip(&breaker, clock_now_ns());
	else if (control->action == CONTROL_RESET)
		control_reset(&breaker, clock_now_ns());
	else if (control->action == CONTROL_SET)
		control_limit(&breaker, control->concurrency);
	else
		control_force(&breaker, control->force, clock_now_ns());
	if (!snapshot_take(segment, index, clock_now_ns(), &after))
		return;
	printf("%s: ", label_cell(&after, text));
	fputs(label_state(&after, text), stdout);
	if (control->action == CONTROL_SET && after.concurrency == 0)
		puts(", concurrency as rules say");
	else
		puts(label_by_hand(&after, text));
}

static size_t control_all(const struct control *control, struct segment *segment)
{
	struct cell_snapshot cell;
	size_t count = 0;

	for (uint32_t i = 0; i < SEGMENT_CELLS; i++) {
		if (!snapshot_take(segment, i, clock_now_ns(), &cell) ||
				!selection_has(&control->selection, &cell))
			continue;
		control_apply(control, segment, i);
		count++;
	}
	return count;
}

/* Appends a word to a list for people, once; what does not fit is left out. */
static void list_add(char *list, const char *word)
{
	size_t length = strlen(list);
	const char *seen = strstr(list, word);

	if (seen && (seen == list || seen[-1] == ' ') &&
			(seen[strlen(word)] == ',' || seen[strlen(word)] == '\0'))
		return;
	if (length + strlen(word) + 3 < LIST_SIZE)
		snprintf(list + length, LIST_SIZE - length, "%s%s", length ? ", " : "", word);
}

static void complain_unknown_rule(const struct control *control, const struct known_rule *rules,
		size_t count)
{
	const char *names[RULES_MAX];
	char list[LIST_SIZE] = "";
	const char *nearest;

	for (size_t i = 0; i < count; i++) {
		names[i] = rules[i].name;
		list_add(list, rules[i].name);
	}
	nearest = text_nearest(control->selection.name, names, count);
	if (count == 0)
		terminal_complain("%s: expected the name of a rule, got '%s': no process has a "
				"rule yet",
				control->command, control->selection.name);
	else if (nearest)
		terminal_complain("%s: expected the name of a rule (%s), got '%s'; did you mean "
				"%s?",
				control->command, list, control->selection.name, nearest);
	else
		terminal_complain("%s: expected the name of a rule (%s), got '%s'",
				control->command, list, control->selection.name);
}

/* The rule has circuits, but none at the place. */
static void complain_unknown_place(const struct control *control, const char *places)
{
	const struct selection *selection = &control->selection;

	if (places[0] == '\0')
		terminal_complain("%s: expected %s alone, as it has one circuit for all addresses, "
				  "got '%s@%s'", control->command, selection->name, selection->name,
				selection->place);
	else
		terminal_complain("%s: expected an address of %s (%s), got '%s'", control->command,
				selection->name, places, selection->place);
}

static void complain_nothing_found(const struct control *control, const struct state *state)
{
	static struct cell_snapshot cells[SEGMENT_CELLS];
	static struct known_rule rules[RULES_MAX];
	const char *name = control->selection.name;
	size_t cell_count = state_cells(state, clock_now_ns(), cells);
	size_t rule_count = rules_gather(state, rules);
	char places[LIST_SIZE] = "", text[LABEL_SIZE];
	bool has_cell = false;

	for (size_t i = 0; i < cell_count; i++) {
		if (!selection_names(&control->selection, &cells[i]))
			continue;
		has_cell = true;
		label_address(&cells[i], text);
		if (cells[i].key.kind == CELL_LOOKUP)
			list_add(places, "lookup");
		else if (text[0] != '\0')
			list_add(places, text);
	}
	if (has_cell) {
		complain_unknown_place(control, places);
		return;
	}
	for (size_t i = 0; i < rule_count; i++) {
		if (strcmp(rules[i].name, name) != 0)
			continue;
		terminal_complain("%s: expected a rule with a circuit, got '%s': no call has been "
				"made under it yet; make one first", control->command, name);
		return;
	}
	complain_unknown_rule(control, rules, rule_count);
}

static int control_run(const struct control *control)
{
	struct state *state = state_open();

	if (!state->segment) {
		terminal_complain("%s: %s", control->command, state->reason);
		return EXIT_OWN_FAILURE;
	}
	if (control_all(control, state->segment) > 0)
		return 0;
	complain_nothing_found(control, state);
	return EXIT_OWN_FAILURE;
}

/* Reads what all have: no option, the name, and `count` operands in all. */
static const char *const *read_operands(int argc, char *argv[], int count, struct control *control)
{
	const char *expected = count == 1 ? "the name of one rule" :
			strcmp(argv[0], "set") == 0 ? "the name of one rule, and concurrency=N" :
			"the name of one rule, and open, closed or none";
	struct command_options options;
	const char *value;

	control->command = argv[0];
	command_options_init(&options, NULL, 0, argc, argv);
	if (command_options_next(&options, &value) == COMMAND_OPTIONS_BAD)
		return NULL;
	if (!command_operands_fit(&options, count, count, expected))
		return NULL;
	if (!selection_parse(argv[0], argv[options.next], &control->selection))
		return NULL;
	return (const char *const *)&argv[options.next];
}

int cmd_trip(int argc, char *argv[])
{
	struct control control = { .action = CONTROL_TRIP };

	return read_operands(argc, argv, 1, &control) ? control_run(&control) : EXIT_OWN_FAILURE;
}

int cmd_reset(int argc, char *argv[])
{
	struct control control = { .action = CONTROL_RESET };

	return read_operands(argc, argv, 1, &control) ? control_run(&control) : EXIT_OWN_FAILURE;
}

int cmd_force(int argc, char *argv[])
{
	struct control control = { .action = CONTROL_FORCE };
	const char *const *operands = read_operands(argc, argv, 2, &control);

	if (!operands)
		return EXIT_OWN_FAILURE;
	if (!label_read_force(operands[1], &control.force)) {
		terminal_complain("force: expected open, closed or none, got '%s'", operands[1]);
		return EXIT_OWN_FAILURE;
	}
	return control_run(&control);
}

/* concurrency=N, =off or =rule: the one setting that all processes share. */
static bool read_limit(const char *text, uint32_t *ret_concurrency)
{
	static const char name[] = "concurrency";
	size_t length = strlen(name);
	struct settings settings = settings_default;
	char error[256];

	if (strncmp(text, name, length) != 0 || text[length] != '=') {
		terminal_complain("set: expected concurrency=N, concurrency=off or "
				  "concurrency=rule, got '%s'; other settings are each process's "
				  "own", text);
		return false;
	}
	if (strcmp(text + length + 1, "rule") == 0) {
		*ret_concurrency = 0;
		return true;
	}
	if (!settings_apply(&settings, name, text + length + 1, error, sizeof(error))) {
		terminal_complain("set: %s", error);
		return false;
	}
	*ret_concurrency = settings.concurrency ? settings.concurrency : CELL_UNLIMITED;
	return true;
}

int cmd_set(int argc, char *argv[])
{
	struct control control = { .action = CONTROL_SET };
	const char *const *operands = read_operands(argc, argv, 2, &control);

	if (!operands || !read_limit(operands[1], &control.concurrency))
		return EXIT_OWN_FAILURE;
	return control_run(&control);
}
