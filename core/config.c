/* SPDX-License-Identifier: MIT */
#include "core/config.h"

#include <string.h>

#include "core/file.h"
#include "core/span.h"
#include "core/text.h"

#define PREFIX "SHUNT_"
#define WHERE_SIZE 112 /* "SHUNT_BREAK_" and a name, or a path and a line */

static const char no_faults[] = "fault rules are not in this version of shunt";
static const char expect_name[] = "a name of letters, digits, _ and -, at most 63 of them";

static void add_problem(
		struct config *config, const char *name, const char *where, const char *what)
{
	if (config->problem_count < CONFIG_MAX_PROBLEMS) {
		struct problem *problem = &config->problems[config->problem_count];

		text_copy(problem->name, sizeof(problem->name), name);
		text_format(problem->text, sizeof(problem->text), "%s: %s", where, what);
	}
	config->problem_count++;
}

static void add_expected(struct config *config, const char *where, const char *expected,
		struct span got, const char *nearest)
{
	char what[CONFIG_PROBLEM_SIZE], quoted[TEXT_QUOTE_SIZE];

	text_quote(quoted, sizeof(quoted), got.text, got.length);
	text_format(what, sizeof(what), "expected %s, got '%s'%s%s%s", expected, quoted,
			nearest ? ", did you mean " : "", nearest ? nearest : "",
			nearest ? "?" : "");
	add_problem(config, "", where, what);
}

static void add_rule(struct config *config, const char *where, struct span name_span,
		struct span text, bool is_from_file)
{
	char name[RULE_NAME_SIZE], error[CONFIG_PROBLEM_SIZE];

	if (!rule_name_is_good(name_span.text, name_span.length)) {
		add_expected(config, where, expect_name, name_span, NULL);
		return;
	}
	text_copy(name, name_span.length + 1, name_span.text);
	const struct rule *other = rule_find(config->rules, config->rule_count, name);
	if (other) {
		if (other->is_from_file == is_from_file)
			add_problem(config, "", where, "a rule of this name is there already");
		return;
	}
	if (config->rule_count == CONFIG_MAX_RULES) {
		add_problem(config, name, where, "left out, there are 128 rules already");
		return;
	}
	struct rule *rule = &config->rules[config->rule_count];
	if (!rule_parse(name, text.text, text.length, rule, error, sizeof(error))) {
		add_problem(config, name, where, error);
		return;
	}
	rule->is_from_file = is_from_file;
	config->wants_names |= target_wants_names(&rule->target);
	config->has_fallback |= rule->settings.fallback.address.family != 0;
	rule_place(config->rules, config->rule_count++);
}

static void load_line(struct config *config, const char *where, struct span line)
{
	struct span rest = span_trim(span_without_comment(line));
	struct span whole = rest;

	if (rest.length == 0)
		return;
	struct span kind = span_take_word(&rest);
	if (span_is(kind, "fault")) {
		add_problem(config, "", where, no_faults);
		return;
	}
	struct span name = span_take_word(&rest);
	if (!span_is(kind, "break") || name.length == 0 || rest.length == 0 || *rest.text != '=') {
		add_expected(config, where, "break NAME = rule", whole, NULL);
		return;
	}
	add_rule(config, where, name, span_from(rest, 1), true);
}

/* The end of a path says more than its beginning. */
static void format_where(char ret[WHERE_SIZE], const char *path, unsigned int line)
{
	char quoted[WHERE_SIZE - 12];
	size_t length = strlen(path), room = sizeof(quoted) - 8;
	size_t skipped = length > room ? length - room : 0;

	text_quote(quoted, sizeof(quoted), path + skipped, length - skipped);
	text_format(ret, WHERE_SIZE, "%s%s:%u", skipped ? "..." : "", quoted, line);
}

void config_load_text(struct config *config, const char *where, const char *text, size_t length)
{
	struct span rest = { text, length };
	char place[WHERE_SIZE];

	for (unsigned int number = 1; rest.length > 0; number++) {
		format_where(place, where, number);
		load_line(config, place, span_take(&rest, '\n'));
	}
}

static void load_file(struct config *config, const char *path)
{
	char where[WHERE_SIZE];
	size_t length;

	if (path[0] != '/') {
		add_expected(config, PREFIX "CONF", "an absolute path",
				span_of(path), NULL);
		return;
	}
	const char *error = file_read(path, config->file, sizeof(config->file), &length);
	if (!error) {
		config_load_text(config, path, config->file, length);
		return;
	}
	size_t used = text_copy(where, sizeof(where), PREFIX "CONF: ");
	text_quote(where + used, sizeof(where) - used, path, strlen(path));
	add_problem(config, "", where, error);
}

/* Variables of one word each. */

static const char *const mode_words[] = { "enforce", "observe", NULL };
static const char *const state_words[] = { "private", NULL };
static const char *const log_words[] = { "off", "stderr", "syslog", NULL };
static const char *const timer_words[] = { "auto", "on", "off", NULL };
static const char *const switch_words[] = { "0", "1", NULL };

static bool copy_path(char *ret, size_t size, const char *path)
{
	if (path[0] != '/' || strlen(path) >= size)
		return false;
	text_copy(ret, size, path);
	return true;
}

/* Who asks for a mode that we cannot read may have wanted to be spared. */
static const char *read_mode(struct config *config, const char *value)
{
	int index = text_word_index(mode_words, value);

	config->observe = index != 0;
	return index < 0 ? "enforce or observe" : NULL;
}

static const char *read_state(struct config *config, const char *value)
{
	config->state_private = strcmp(value, "private") == 0;
	if (config->state_private ||
			copy_path(config->state_path, sizeof(config->state_path), value))
		return NULL;
	return "private, or an absolute path of at most 255 characters";
}

static const char *read_log(struct config *config, const char *value)
{
	int index = text_word_index(log_words, value);

	if (index >= 0)
		config->log = (enum log_kind)index;
	else if (copy_path(config->log_path, sizeof(config->log_path), value))
		config->log = LOG_FILE;
	else
		return "off, stderr, syslog, or an absolute path of at most 255 characters";
	return NULL;
}

static const char *read_seed(struct config *config, const char *value)
{
	const char *expected = text_count(value, &config->seed);

	config->has_seed = !expected;
	return expected;
}

static const char *read_timer(struct config *config, const char *value)
{
	int index = text_word_index(timer_words, value);

	if (index < 0)
		return "auto, on or off";
	config->timer = (enum timer_mode)index;
	return NULL;
}

static const char *read_expire(struct config *config, const char *value)
{
	uint64_t ns;

	(void)config;
	return text_duration(value, &ns);
}

static const char *read_backtrace(struct config *config, const char *value)
{
	int index = text_word_index(switch_words, value);

	config->backtrace = index == 1;
	return index < 0 ? "0 or 1" : NULL;
}

struct variable {
	const char *name;
	const char *(*read)(struct config *config, const char *value); /* NULL: read elsewhere */
	const char *const *words;
};

static const struct variable variables[] = {
	{ PREFIX "MODE", read_mode, mode_words },
	{ PREFIX "STATE", read_state, state_words },
	{ PREFIX "LOG", read_log, log_words },
	{ PREFIX "SEED", read_seed, NULL },
	{ PREFIX "TIMER", read_timer, timer_words },
	{ PREFIX "EXPIRE", read_expire, NULL },
	{ PREFIX "BACKTRACE", read_backtrace, NULL },
	{ PREFIX "OFF", NULL, NULL },
	{ PREFIX "PROC", NULL, NULL },
	{ PREFIX "SKIP", NULL, NULL },
	{ PREFIX "CONF", NULL, NULL },
	{ PREFIX "BREAK", NULL, NULL },
	{ PREFIX "FAULT", NULL, NULL },
};

#define VARIABLE_COUNT (sizeof(variables) / sizeof(variables[0]))

/* As getenv(), which hosts replace. NULL also for an empty one. */
static const char *find_variable(char *const environ[], const char *name)
{
	size_t length = strlen(name);

	for (; environ && *environ; environ++) {
		if (strncmp(*environ, name, length) == 0 && (*environ)[length] == '=')
			return (*environ)[length + 1] ? *environ + length + 1 : NULL;
	}
	return NULL;
}

static bool is_kept_out(char *const environ[], const char *program)
{
	const char *only = find_variable(environ, PREFIX "PROC");
	const char *skipped = find_variable(environ, PREFIX "SKIP");

	if (!program)
		return false;
	return (only && !text_glob_any(only, program)) ||
			(skipped && text_glob_any(skipped, program));
}

/* The kill switch works however it is spelled; only 0 leaves us on. */
static bool is_switched_off(struct config *config, char *const environ[])
{
	const char *value = find_variable(environ, PREFIX "OFF");

	if (!value || strcmp(value, "0") == 0)
		return false;
	if (strcmp(value, "1") != 0)
		add_expected(config, PREFIX "OFF", "0 or 1", span_of(value),
				NULL);
	return true;
}

static void format_variable(char ret[WHERE_SIZE], struct span name)
{
	text_quote(ret, WHERE_SIZE, name.text, name.length);
}

static const char *nearest_variable(struct span name)
{
	const char *names[VARIABLE_COUNT];
	char copy[32];
	size_t length = name.length < sizeof(copy) ? name.length : sizeof(copy) - 1;

	for (size_t i = 0; i < VARIABLE_COUNT; i++)
		names[i] = variables[i].name;
	text_copy(copy, length + 1, name.text);
	const char *nearest = text_nearest(copy, names, VARIABLE_COUNT);
	if (nearest || length < sizeof(PREFIX))
		return nearest;
	/* SHUNT_BRAEK_PAY: the kind of rule is what is misspelt. */
	copy[sizeof(PREFIX) - 1 + strcspn(copy + sizeof(PREFIX) - 1, "_")] = '\0';
	return text_nearest(copy, names, VARIABLE_COUNT);
}

static void say_unknown(struct config *config, struct span name)
{
	const char *nearest = nearest_variable(name);
	char where[WHERE_SIZE], what[96];

	format_variable(where, name);
	text_format(what, sizeof(what), "no such variable%s%s%s", nearest ? ", did you mean " : "",
			nearest ? nearest : "", nearest ? "?" : "");
	add_problem(config, "", where, what);
}

static void load_switch(struct config *config, const struct variable *variable, const char *value)
{
	size_t count = 0;

	if (!variable->read || value[0] == '\0')
		return;
	const char *expected = variable->read(config, value);
	if (!expected)
		return;
	while (variable->words && variable->words[count])
		count++;
	add_expected(config, variable->name, expected, span_of(value),
			text_nearest(value, variable->words, count));
}

static const struct variable *variable_of(struct span name)
{
	for (size_t i = 0; i < VARIABLE_COUNT; i++) {
		if (span_is(name, variables[i].name))
			return &variables[i];
	}
	return NULL;
}

/* `seen`: bit = row of `variables`; the first of two counts, as for getenv(). */
static void load_variable(struct config *config, struct span name, const char *value,
		uint32_t *seen)
{
	const struct variable *variable = variable_of(name);
	struct span text = { value, strlen(value) };
	char where[WHERE_SIZE];

	format_variable(where, name);
	if (span_is(name, PREFIX "BREAK"))
		add_rule(config, where, span_of("default"), text, false);
	else if (span_begins(name, PREFIX "BREAK_"))
		add_rule(config, where, span_from(name, sizeof(PREFIX "BREAK_") - 1), text, false);
	else if (span_is(name, PREFIX "FAULT") || span_begins(name, PREFIX "FAULT_"))
		add_problem(config, "", where, no_faults);
	else if (!variable)
		say_unknown(config, name);
	else if (!(*seen >> (variable - variables) & 1))
		load_switch(config, variable, value);
	if (variable)
		*seen |= 1u << (variable - variables);
}

static void reset(struct config *config)
{
	/* Not the whole: most of it is never touched, and stays without memory. */
	config->rule_count = 0;
	config->problem_count = 0;
	config->is_off = config->observe = config->state_private = config->backtrace = false;
	config->wants_names = config->has_fallback = config->has_seed = false;
	config->log = LOG_OFF;
	config->timer = TIMER_AUTO;
	config->seed = 0;
	config->state_path[0] = config->log_path[0] = '\0';
}

void config_load(struct config *config, char *const environ[], const char *program)
{
	const char *path = find_variable(environ, PREFIX "CONF");
	uint32_t seen = 0;

	reset(config);
	config->is_off = is_switched_off(config, environ) || is_kept_out(environ, program);
	if (config->is_off)
		return;
	for (; environ && *environ; environ++) {
		const char *equals = strchr(*environ, '=');

		if (equals && strncmp(*environ, PREFIX, sizeof(PREFIX) - 1) == 0)
			load_variable(config, (struct span){*environ, (size_t)(equals - *environ)},
					equals + 1, &seen);
	}
	if (path)
		load_file(config, path);
}

const struct rule *config_match(const struct config *config, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct rule *rule = &config->rules[i];

		if (target_matches(&rule->target, endpoint))
			return rule->target.is_excluded ? NULL : rule;
	}
	return NULL;
}
