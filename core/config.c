/* SPDX-License-Identifier: MIT */
#include "core/config.h"

#include <string.h>

#include "core/file.h"
#include "core/span.h"
#include "core/text.h"
#include "core/variable.h"
#include "core/variable_table.h"

#define PREFIX "SHUNT_"
#define WHERE_SIZE 112 /* "SHUNT_BREAK_" and a name, or a path and a line */

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
		config_add_expected(config, where,
				!is_rule ? "break NAME = rule or fault NAME = rule" :
				is_fault ? "fault NAME = rule" : "break NAME = rule", whole);
		return;
	}
	struct config_source source = { where, name, span_from(rest, 1), true };
	if (is_fault)
		config_add_fault(config, &source);
	else
		config_add_rule(config, &source);
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
		config_add_expected(config, PREFIX "CONF", "an absolute path", span_of(path));
		return;
	}
	const char *error = file_read(path, config->file, sizeof(config->file), &length);
	if (!error) {
		config_load_text(config, path, config->file, length);
		return;
	}
	size_t used = text_copy(where, sizeof(where), PREFIX "CONF: ");
	text_quote(where + used, sizeof(where) - used, path, strlen(path));
	config_add_problem(config, "", where, error);
}

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
		config_add_expected(config, PREFIX "OFF", "0 or 1", span_of(value));
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
	struct config_source source = { where, span_of("default"), span_of(value), false };

	for (size_t kind = 0; kind < 2; kind++) {
		if (!span_begins(name, kinds[kind]))
			continue;
		if (name.length > length) {
			if (name.text[length] != '_')
				return false;
			source.name = span_from(name, length + 1);
		}
		if (kind)
			config_add_fault(config, &source);
		else
			config_add_rule(config, &source);
		return true;
	}
	return false;
}

/* `seen`: bit = row of the table; the first of two counts, as for getenv(). */
static void load_variable(struct config *config, struct span name, const char *value,
		uint32_t *seen)
{
	size_t count;
	const struct variable *table = variable_table(&count);
	const struct variable *variable = variable_find(table, count, name);
	char where[WHERE_SIZE], error[CONFIG_PROBLEM_SIZE];

	format_variable(where, name);
	if (load_rule(config, name, where, value))
		return;
	if (!variable) {
		variable_unknown(table, count, name, sizeof(PREFIX) - 1, error, sizeof(error));
		config_add_problem(config, "", where, error);
		return;
	}
	if (!(*seen >> (variable - table) & 1) &&
			!variable_read(variable, config, value, error, sizeof(error)))
		config_add_problem(config, "", where, error);
	*seen |= 1u << (variable - table);
}

/* Only now: a rule that is for other programs may have kept its name from one of the file. */
static void choose_faults(struct config *config, const struct config_process *process)
{
	size_t kept = 0;

	if (config->has_bad_bound && config->fault_count > 0) {
		config->fault_count = 0;
		config_add_problem(config, "", "fault rules",
				"all left out, as " PREFIX "EXPIRE or "
				"a ^target, which is to bound them, cannot be read");
	}
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
	config->has_bad_bound = false;
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
