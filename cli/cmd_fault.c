/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/faults.h"
#include "cli/json.h"
#include "cli/state.h"
#include "cli/terminal.h"
#include "core/clock.h"
#include "core/fault_text.h"
#include "core/rule_hint.h"
#include "core/text.h"

#define PROBLEM_SIZE 512
#define RULE_TEXT_SIZE 1024
#define LIST_SIZE 256
#define FOR_MAX_NS 86400000000000u /* as `for` of a rule */

enum { FAULT_FOR, FAULT_JSON, FAULT_ALL, FAULT_OPTION_COUNT };

static const struct command_option fault_options[] = {
	[FAULT_FOR] = { "--for", .has_value = true },
	[FAULT_JSON] = { "--json", .has_value = false },
	[FAULT_ALL] = { "--all", .has_value = false },
};

struct request {
	const char *duration; /* of --for, or NULL */
	bool as_json, shows_all;
	const char *name;
	char rule[RULE_TEXT_SIZE];
	int operands;
};

/* The segment of this environment, made where there is none. NULL after a complaint. */
static struct segment *open_segment(const char *command, bool make)
{
	struct state *state = state_open();
	const char *why = state->reason;

	if (!state->segment && state->path[0] && make)
		state->segment = segment_open(state->path, true, &why);
	if (state->segment)
		return state->segment;
	terminal_complain("fault %s: %s", command, state->reason[0] ? state->reason : why);
	return NULL;
}

static bool read_duration(const char *text, uint64_t *ret_ns)
{
	const char *expected;

	*ret_ns = FAULT_ADDED_FOR_NS;
	if (!text)
		return true;
	expected = text_duration(text, ret_ns);
	if (!expected && *ret_ns > 0 && *ret_ns <= FOR_MAX_NS)
		return true;
	terminal_complain("fault add: --for: expected %s, got '%s'",
			expected && !text_is_too_large(expected) ? expected :
			"a duration from 1ns to 24h", text);
	return false;
}

static bool read_rule(const struct request *request, struct fault *ret)
{
	char problem[PROBLEM_SIZE];

	if (!rule_name_is_good(request->name, strlen(request->name))) {
		terminal_complain("fault add: expected a name of letters, digits, _ and -, at most "
				  "63 of them, got '%s'", request->name);
		return false;
	}
	if (fault_parse(request->name, request->rule, strlen(request->rule), ret, problem,
			sizeof(problem)))
		return true;
	rule_hint(request->rule, strlen(request->rule), true, problem, sizeof(problem));
	terminal_complain("fault add: %s: %s", request->name, problem);
	return false;
}

/* Has a rule of an environment, that some process used not long ago, the name? */
static bool is_taken(struct segment *segment, const char *name)
{
	uint64_t now_ns = clock_now_ns();
	const struct fault_record *record;
	struct fault_view view;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (!fault_table_read(&segment->faults, i, now_ns, &view) || view.is_added ||
				strcmp(view.name, name) != 0)
			continue;
		record = fault_table_at(&segment->faults, i, view.key);
		if (record && !fault_record_is_forgotten(record, now_ns))
			return true;
	}
	return false;
}

static int add(const struct request *request)
{
	static struct fault fault;
	char text[FAULT_TEXT_SIZE + 1], span[FAULTS_TEXT_SIZE];
	uint64_t for_ns, now_ns = clock_now_ns();
	struct segment *segment;

	if (request->operands < 2) {
		terminal_complain("fault add: expected a name and a rule, such as: fault add REDIS "
				  "redis:6379,hang --for 30s");
		return EXIT_OWN_FAILURE;
	}
	if (!read_duration(request->duration, &for_ns) || !read_rule(request, &fault))
		return EXIT_OWN_FAILURE;
	fault_describe(&fault, text, sizeof(text));
	if (strlen(text) >= FAULT_TEXT_SIZE) {
		terminal_complain("fault add: expected a rule of at most %d characters, got "
				  "'%s...'", FAULT_TEXT_SIZE - 1, text);
		return EXIT_OWN_FAILURE;
	}
	segment = open_segment("add", true);
	if (!segment)
		return EXIT_OWN_FAILURE;
	if (!fault_table_add(&segment->faults, &fault, text, now_ns + for_ns, now_ns)) {
		terminal_complain("fault add: expected at most %d fault rules, got another; see "
				  "'shunt fault list', and 'shunt fault clear'", FAULT_TABLE_SIZE);
		return EXIT_OWN_FAILURE;
	}
	if (is_taken(segment, fault.name))
		terminal_complain("fault add: a rule of an environment is called %s, too: both "
				  "strike, and reports do not tell them apart", fault.name);
	printf("%s: added for %s: %s\n", fault.name, faults_span(for_ns, span), text);
	return 0;
}

static int list(const struct request *request)
{
	const struct state *state = state_open();

	if (request->operands > 0) {
		terminal_complain("fault list: expected only options, got '%s'", request->name);
		return EXIT_OWN_FAILURE;
	}
	if (!state->segment && !state->is_missing) {
		terminal_complain("fault list: %s", state->reason);
		return EXIT_OWN_FAILURE;
	}
	if (request->as_json)
		json_print(json_fault_list(state, clock_now_ns()));
	else if (faults_print(state, request->shows_all) == 0)
		puts("no fault rule: no process has one, and none was added");
	return 0;
}

/* The names of rules that can be cleared, for people. */
static void list_added(const struct segment *segment, char ret[LIST_SIZE])
{
	struct fault_view view;
	size_t length = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (fault_table_read(&segment->faults, i, clock_now_ns(), &view) && view.is_added &&
				!view.is_over && length + strlen(view.name) + 3 < LIST_SIZE)
			length += (size_t)snprintf(ret + length, LIST_SIZE - length, "%s%s",
					length ? ", " : "", view.name);
	}
}

static int complain_unknown(const struct segment *segment, const char *name)
{
	char names[LIST_SIZE];

	list_added(segment, names);
	if (names[0])
		terminal_complain("fault clear: expected the name of an added rule (%s), got '%s'",
				names, name);
	else
		terminal_complain("fault clear: expected the name of an added rule, got '%s': "
				  "there is none; rules of an environment end with their process",
				name);
	return EXIT_OWN_FAILURE;
}

static int clear(const struct request *request)
{
	struct segment *segment;
	uint32_t count;

	if (request->operands > 1) {
		terminal_complain("fault clear: expected one name at most, got '%s'",
				request->rule);
		return EXIT_OWN_FAILURE;
	}
	if (!request->name && state_open()->is_missing) {
		puts("0 added fault rules cleared");
		return 0;
	}
	segment = open_segment("clear", false);
	if (!segment)
		return EXIT_OWN_FAILURE;
	count = fault_table_clear(&segment->faults, request->name, clock_now_ns());
	if (count == 0 && request->name)
		return complain_unknown(segment, request->name);
	printf("%" PRIu32 " added fault rule%s cleared\n", count, count == 1 ? "" : "s");
	return 0;
}

static const struct {
	const char *name, *command; /* as it is called, and in complaints */
	int (*function)(const struct request *request);
	bool takes[FAULT_OPTION_COUNT];
} actions[] = {
	{ "add", "fault add", add, { [FAULT_FOR] = true } },
	{ "list", "fault list", list, { [FAULT_JSON] = true, [FAULT_ALL] = true } },
	{ "clear", "fault clear", clear, { false } },
};

#define ACTION_COUNT (sizeof(actions) / sizeof(actions[0]))

/* Words of a rule may stand alone; spaces go between them. */
static bool take_operand(struct request *request, const char *word)
{
	size_t length = strlen(request->rule);

	if (request->operands++ == 0) {
		request->name = word;
		return true;
	}
	if (length + strlen(word) + 2 > sizeof(request->rule)) {
		terminal_complain("fault: expected a rule of at most %d characters, got more",
				RULE_TEXT_SIZE - 2);
		return false;
	}
	snprintf(request->rule + length, sizeof(request->rule) - length, "%s%s",
			length ? " " : "", word);
	return true;
}

static bool take_option(struct request *request, size_t action, int option, const char *value)
{
	if (!actions[action].takes[option]) {
		terminal_complain("%s: expected no %s; see 'shunt help fault'",
				actions[action].command, fault_options[option].name);
		return false;
	}
	if (option == FAULT_FOR)
		request->duration = value;
	else if (option == FAULT_JSON)
		request->as_json = true;
	else
		request->shows_all = true;
	return true;
}

/* Options may stand behind the operands, too. */
static bool read_request(int argc, char *argv[], size_t action, struct request *ret)
{
	struct command_options options;
	const char *value = NULL;
	int option;

	command_options_init(&options, fault_options, FAULT_OPTION_COUNT, argc, argv);
	options.command = actions[action].command;
	for (;;) {
		option = command_options_next(&options, &value);
		if (option == COMMAND_OPTIONS_BAD)
			return false;
		if (option >= 0) {
			if (!take_option(ret, action, option, value))
				return false;
			continue;
		}
		if (options.next >= argc)
			return true;
		if (!take_operand(ret, argv[options.next++]))
			return false;
	}
}

int cmd_fault(int argc, char *argv[])
{
	static struct request request;
	const char *names[ACTION_COUNT];
	const char *nearest;

	if (argc < 2) {
		terminal_complain("fault: expected add, list or clear, got nothing; see 'shunt "
				  "help fault'");
		return EXIT_OWN_FAILURE;
	}
	for (size_t i = 0; i < ACTION_COUNT; i++) {
		names[i] = actions[i].name;
		if (strcmp(argv[1], names[i]) == 0)
			return read_request(argc - 1, argv + 1, i, &request)
					? actions[i].function(&request) : EXIT_OWN_FAILURE;
	}
	nearest = text_nearest(argv[1], names, ACTION_COUNT);
	terminal_complain("fault: expected %s, got '%s'", nearest ? nearest : "add, list or clear",
			argv[1]);
	return EXIT_OWN_FAILURE;
}
