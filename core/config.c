/* SPDX-License-Identifier: MIT */
#include "core/config.h"

#include <stddef.h>
#include <string.h>

#include "core/fault_text.h"
#include "core/file.h"
#include "core/rule_hint.h"
#include "core/span.h"
#include "core/text.h"
#include "core/variable.h"

#define PREFIX "SHUNT_"
#define WHERE_SIZE 112 /* "SHUNT_BREAK_" and a name, or a path and a line */

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
	char what[CONFIG_PROBLEM_SIZE];

	text_expected(what, sizeof(what), expected, got.text, got.length, nearest);
	add_problem(config, "", where, what);
}

/* A rule as it stands somewhere. */
struct source {
	const char *where;
	struct span name, text;
	bool is_from_file;
};

/* Has it a good name, which no rule of that kind has yet? A rule of the file yields to one of the
 * environment without a word. */
static bool copy_name(struct config *config, const struct source *source, bool is_fault,
		char ret[RULE_NAME_SIZE])
{
	if (!rule_name_is_good(source->name.text, source->name.length)) {
		add_expected(config, source->where, expect_name, source->name, NULL);
		return false;
	}
	text_copy(ret, source->name.length + 1, source->name.text);
	const struct rule *rule = is_fault ? NULL : rule_find(config->rules, config->rule_count,
		ret);
	const struct fault *fault = is_fault ? fault_find(config->faults, config->fault_count,
		ret) : NULL;
	if (!rule && !fault)
		return true;
	if ((rule ? rule->is_from_file : fault->is_from_file) == source->is_from_file)
		add_expected(config, source->where, "a name no rule has", source->name, NULL);
	return false;
}

static void add_rule(struct config *config, const struct source *source)
{
	char name[RULE_NAME_SIZE], error[CONFIG_PROBLEM_SIZE];

	if (!copy_name(config, source, false, name))
		return;
	if (config->rule_count == CONFIG_MAX_RULES) {
		add_problem(config, name, source->where, "left out, there are 128 rules already");
		return;
	}
	struct rule *rule = &config->rules[config->rule_count];
	if (!rule_parse(name, source->text.text, source->text.length, rule, error, sizeof(error))) {
		rule_hint(source->text.text, source->text.length, false, error, sizeof(error));
		add_problem(config, name, source->where, error);
		return;
	}
	rule->is_from_file = source->is_from_file;
	config->wants_names |= target_wants_names(&rule->target);
	config->has_fallback |= rule->settings.fallback.address.family != 0;
	rule_place(config->rules, config->rule_count++);
}

/* Its problems go by no name: a breaker rule may have the same. */
static void add_fault(struct config *config, const struct source *source)
{
	char name[RULE_NAME_SIZE], error[CONFIG_PROBLEM_SIZE];

	if (!copy_name(config, source, true, name))
		return;
	if (config->fault_count == CONFIG_MAX_FAULTS) {
		add_problem(config, "", source->where,
				"left out, there are 32 fault rules already");
		return;
	}
	struct fault *fault = &config->faults[config->fault_count];
	if (!fault_parse(name, source->text.text, source->text.length, fault, error,
		sizeof(error))) {
		rule_hint(source->text.text, source->text.length, true, error, sizeof(error));
		add_problem(config, "", source->where, error);
		return;
	}
	fault->is_from_file = source->is_from_file;
	config->wants_names |= target_wants_names(&fault->target);
	fault_place(config->faults, config->fault_count++);
}

static void load_line(struct config *config, const char *where, struct span line)
{
	struct span rest = span_trim(span_without_comment(line));
	struct span whole = rest;

	if (rest.length == 0)
		return;
	struct span kind = span_take_word(&rest);
	struct span name = span_take_word(&rest);
	bool is_fault = span_is(kind, "fault"), is_rule = is_fault || span_is(kind, "break");
	if (!is_rule || name.length == 0 || rest.length == 0 || *rest.text != '=') {
		add_expected(config, where,
				!is_rule ? "break NAME = rule or fault NAME = rule" :
				is_fault ? "fault NAME = rule" : "break NAME = rule", whole, NULL);
		return;
	}
	struct source source = { where, name, span_from(rest, 1), true };
	if (is_fault)
		add_fault(config, &source);
	else
		add_rule(config, &source);
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
		add_expected(config, PREFIX "CONF", "an absolute path", span_of(path), NULL);
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

/* Who asks for a mode that we cannot read may have wanted to be spared. */
static const char *read_mode(const struct variable *variable, void *record, const char *value)
{
	struct config *config = record;
	int index = text_word_index(variable->words, value);

	config->observe = index != 0;
	return index < 0 ? variable->expected : NULL;
}

static const char *read_state(const struct variable *variable, void *record, const char *value)
{
	struct config *config = record;

	config->state_private = strcmp(value, "private") == 0;
	return config->state_private ? NULL : variable_path(variable, record, value);
}

static const char *read_log(const struct variable *variable, void *record, const char *value)
{
	struct config *config = record;
	int index = text_word_index(variable->words, value);
	const char *expected = index < 0 ? variable_path(variable, record, value) : NULL;

	if (!expected)
		config->log = index < 0 ? LOG_FILE : (enum log_kind)index;
	return expected;
}

static const char *read_seed(const struct variable *variable, void *record, const char *value)
{
	struct config *config = record;
	const char *expected = variable_number(variable, record, value);

	config->has_seed = !expected;
	return expected;
}

#define A_PATH "an absolute path of at most 255 characters"

static const struct variable variables[] = {
#define FIELD(name) offsetof(struct config, name)
	{ PREFIX "MODE", read_mode, 0, mode_words, "enforce or observe" },
	{ PREFIX "STATE", read_state, FIELD(state_path), state_words, "private, or " A_PATH },
	{ PREFIX "LOG", read_log, FIELD(log_path), log_words, "off, stderr, syslog, or " A_PATH },
	{ PREFIX "SEED", read_seed, FIELD(seed), NULL, NULL },
	{ PREFIX "TIMER", variable_word, FIELD(timer), timer_words, "auto, on or off" },
	{ PREFIX "EXPIRE", variable_duration, FIELD(expire_ns), NULL, "a duration above 0s" },
	{ PREFIX "BACKTRACE", variable_switch, FIELD(backtrace), switch_words, "0 or 1" },
	{ PREFIX "REPORT", variable_path, FIELD(report_path), NULL, A_PATH },
	{ PREFIX "REPLAY", variable_path, FIELD(replay_path), NULL, A_PATH },
	{ PREFIX "RUN", variable_number, FIELD(run), NULL, NULL },
	{ PREFIX "OFF", NULL, 0, NULL, NULL },
	{ PREFIX "PROC", NULL, 0, NULL, NULL },
	{ PREFIX "SKIP", NULL, 0, NULL, NULL },
	{ PREFIX "CONF", NULL, 0, NULL, NULL },
	{ PREFIX "BREAK", NULL, 0, NULL, NULL },
	{ PREFIX "FAULT", NULL, 0, NULL, NULL },
#undef FIELD
};

#define VARIABLE_COUNT (sizeof(variables) / sizeof(variables[0]))

static bool is_kept_out(char *const environ[], const struct config_process *process)
{
	const char *only = variable_value(environ, PREFIX "PROC");
	const char *skipped = variable_value(environ, PREFIX "SKIP");

	if (!process)
		return false;
	return (only && !text_glob_any(only, process->program)) ||
			(skipped && text_glob_any(skipped, process->program));
}

/* The kill switch works however it is spelled; only 0 leaves us on. */
static bool is_switched_off(struct config *config, char *const environ[])
{
	const char *value = variable_value(environ, PREFIX "OFF");

	if (!value || strcmp(value, "0") == 0)
		return false;
	if (strcmp(value, "1") != 0)
		add_expected(config, PREFIX "OFF", "0 or 1", span_of(value), NULL);
	return true;
}

static void format_variable(char ret[WHERE_SIZE], struct span name)
{
	text_quote(ret, WHERE_SIZE, name.text, name.length);
}

/* SHUNT_BREAK, SHUNT_BREAK_PAY and the like: is it a rule? */
static bool load_rule(struct config *config, struct span name, const char *where, const char *value)
{
	static const char *const kinds[] = { PREFIX "BREAK", PREFIX "FAULT" };
	const size_t length = sizeof(PREFIX "BREAK") - 1;
	struct source source = { where, span_of("default"), span_of(value), false };

	for (size_t kind = 0; kind < 2; kind++) {
		if (!span_begins(name, kinds[kind]))
			continue;
		if (name.length > length) {
			if (name.text[length] != '_')
				return false;
			source.name = span_from(name, length + 1);
		}
		if (kind)
			add_fault(config, &source);
		else
			add_rule(config, &source);
		return true;
	}
	return false;
}

/* `seen`: bit = row of `variables`; the first of two counts, as for getenv(). */
static void load_variable(struct config *config, struct span name, const char *value,
		uint32_t *seen)
{
	const struct variable *variable = variable_find(variables, VARIABLE_COUNT, name);
	char where[WHERE_SIZE], error[CONFIG_PROBLEM_SIZE];

	format_variable(where, name);
	if (load_rule(config, name, where, value))
		return;
	if (!variable) {
		variable_unknown(variables, VARIABLE_COUNT, name, sizeof(PREFIX) - 1, error,
				sizeof(error));
		add_problem(config, "", where, error);
		return;
	}
	if (!(*seen >> (variable - variables) & 1) &&
			!variable_read(variable, config, value, error, sizeof(error)))
		add_problem(config, "", where, error);
	*seen |= 1u << (variable - variables);
}

/* Only now: a rule that is for other programs may have kept its name from one of the file. */
static void choose_faults(struct config *config, const struct config_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < config->fault_count; i++) {
		struct fault *fault = &config->faults[i];

		if (process && !fault_is_for(fault, process->program, process->euid))
			continue;
		if (fault != &config->faults[kept])
			config->faults[kept] = *fault;
		config->faults[kept++].expire_ns = config->expire_ns;
	}
	config->fault_count = kept;
}

static void reset(struct config *config)
{
	/* Not the whole: most of it is never touched, and stays without memory. */
	config->rule_count = config->fault_count = config->problem_count = 0;
	config->is_off = config->observe = config->state_private = config->backtrace = false;
	config->wants_names = config->has_fallback = config->has_seed = false;
	config->log = LOG_OFF;
	config->timer = TIMER_AUTO;
	config->seed = config->expire_ns = config->run = 0;
	config->state_path[0] = config->log_path[0] = '\0';
	config->report_path[0] = config->replay_path[0] = '\0';
}

void config_load(struct config *config, char *const environ[],
		const struct config_process *process)
{
	const char *path = variable_value(environ, PREFIX "CONF");
	uint32_t seen = 0;

	reset(config);
	config->is_off = is_switched_off(config, environ) || is_kept_out(environ, process);
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
	choose_faults(config, process);
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

uint32_t config_match_faults(const struct config *config, const struct endpoint *endpoint,
		enum fault_protocol protocol)
{
	uint32_t matches = 0;

	/* Exclusions come first. */
	for (size_t i = 0; i < config->fault_count; i++) {
		if (!fault_matches(&config->faults[i], endpoint, protocol))
			continue;
		if (config->faults[i].target.is_excluded)
			return 0;
		matches |= 1u << i;
	}
	return matches;
}
