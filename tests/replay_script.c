/* SPDX-License-Identifier: MIT */
#include "tests/replay_script.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bulkhead.h"

#define MAX_DAYS_MS (1000LL * 86400000)
#define MAX_CALLS 100000000
#define MAX_ACQUIRES 100000

struct word {
	const char *name;
	int value;
	bool is_slow;
};

static const struct word ops[] = {
	{ "acquire", STEP_ACQUIRE, false },
	{ "done", STEP_DONE, false },
	{ "call", STEP_CALL, false },
	{ "counts", STEP_COUNTS, false },
	{ "state", STEP_STATE, false },
	{ "set", STEP_SET, false },
	{ "reset", STEP_RESET, false },
	{ "trip", STEP_TRIP, false },
	{ "half", STEP_HALF, false },
	{ "wall", STEP_WALL, false },
	{ "die", STEP_DIE, false },
	{ "metric", STEP_METRIC, false },
	{ "inflight", STEP_INFLIGHT, false },
	{ NULL, 0, false },
};

static const struct word outs[] = {
	{ "success", OUTCOME_SUCCESS, false },
	{ "failure", OUTCOME_FAILURE, false },
	{ "timeout", OUTCOME_TIMEOUT, false },
	{ "bad_request", OUTCOME_IGNORED, false },
	{ "cancel", OUTCOME_CANCELLED, false },
	{ "reject_pool", OUTCOME_REJECTED, false },
	{ "slow_success", OUTCOME_SUCCESS, true },
	{ "slow_failure", OUTCOME_FAILURE, true },
	{ NULL, 0, false },
};

static const struct word states[] = {
	{ "closed", CIRCUIT_CLOSED, false },
	{ "open", CIRCUIT_OPEN, false },
	{ "half_open", CIRCUIT_HALF_OPEN, false },
	{ NULL, 0, false },
};

/* Bit 2: enabled=no. */
static const struct word forces[] = {
	{ "none", FORCE_NONE, false },
	{ "open", FORCE_OPEN, false },
	{ "closed", FORCE_CLOSED, false },
	{ "metrics_only", FORCE_CLOSED, false },
	{ "disabled", FORCE_NONE | 4, false },
	{ NULL, 0, false },
};

static const struct word windows[] = {
	{ "time", 0, false },
	{ "count", 1, false },
	{ NULL, 0, false },
};

static const struct word evals[] = {
	{ "event", 0, false },
	{ "snapshot", 1, false },
	{ NULL, 0, false },
};

static const struct word half_opens[] = {
	{ "any_failure", HALF_OPEN_ANY, false },
	{ "rate", HALF_OPEN_RATE, false },
	{ NULL, 0, false },
};

static const struct word neutrals[] = {
	{ "reopen", NEUTRAL_REOPEN, false },
	{ "release", NEUTRAL_RELEASE, false },
	{ NULL, 0, false },
};

/* Always false, for `return`. */
static bool expected(char *error, const char *what, const char *expectation, const json_t *got)
{
	char *text = got == NULL ? NULL : json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT);
	const char *shown = text == NULL ? "nothing" : text;
	size_t length = strlen(shown);
	bool is_quoted = length >= 2 && shown[0] == '"';

	snprintf(error, SCRIPT_ERROR_SIZE, "%.100s: expected %.200s, got '%.*s'", what, expectation,
			(int)(is_quoted ? length - 2 : length), is_quoted ? shown + 1 : shown);
	free(text);
	return false;
}

static bool read_word(const char *what, const json_t *value, const struct word *words,
		const struct word **ret, char *error)
{
	const char *text = json_string_value(value);
	char list[200] = "";

	for (const struct word *word = words; word->name != NULL; word++) {
		if (text != NULL && strcmp(text, word->name) == 0) {
			*ret = word;
			return true;
		}
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				word == words ? "one of " : " ", word->name);
	}
	return expected(error, what, list, value);
}

static bool read_number(const char *what, const json_t *value, double low, double high, double *ret,
		char *error)
{
	char range[80];

	if (json_is_number(value) && json_number_value(value) >= low &&
			json_number_value(value) <= high) {
		*ret = json_number_value(value);
		return true;
	}
	snprintf(range, sizeof(range), "a number from %.0f to %.0f", low, high);
	return expected(error, what, range, value);
}

enum unit { UNIT_COUNT, UNIT_MS_TO_NS, UNIT_PERCENT, UNIT_THOUSANDTHS };

static const struct number_row {
	const char *key;
	enum unit unit;
	double low, high;
	size_t offset; /* in struct script_config */
	size_t size;
} number_rows[] = {
#define ROW(key, unit, low, high, field) \
	{ key, unit, low, high, offsetof(struct script_config, field), \
		sizeof(((struct script_config *)0)->field) }
	ROW("window_ms", UNIT_MS_TO_NS, 1, MAX_DAYS_MS, settings.window.span_ns),
	ROW("buckets", UNIT_COUNT, 1, WINDOW_MAX_BUCKETS, settings.window.buckets),
	ROW("count_size", UNIT_COUNT, 1, WINDOW_MAX_CALLS, settings.window.calls),
	ROW("min_volume", UNIT_COUNT, 0, UINT32_MAX, settings.volume),
	ROW("error_pct", UNIT_PERCENT, 0, 100, settings.errors_ratio),
	ROW("sleep_ms", UNIT_COUNT, 0, SETTINGS_MAX_MS, settings.sleep_ms),
	ROW("probes", UNIT_COUNT, 1, CIRCUIT_MAX_PROBES, settings.probes),
	ROW("close_after", UNIT_COUNT, 1, UINT32_MAX, close_after),
	ROW("lease_ms", UNIT_COUNT, 0, SETTINGS_MAX_MS, settings.lease_ms),
	ROW("backoff_mult", UNIT_THOUSANDTHS, 1, 1000, settings.backoff_factor_thousandths),
	ROW("backoff_max_ms", UNIT_COUNT, 0, SETTINGS_MAX_MS, settings.backoff_max_ms),
	ROW("slow_ms", UNIT_MS_TO_NS, 0, MAX_DAYS_MS, settings.slow_ns),
	ROW("slow_pct", UNIT_PERCENT, 0, 100, settings.slow_ratio),
	ROW("consecutive", UNIT_COUNT, 0, UINT32_MAX, settings.consecutive),
	ROW("sem_max", UNIT_COUNT, 0, BULKHEAD_MAX, settings.concurrency),
#undef ROW
};

static void store(struct script_config *config, const struct number_row *row, uint64_t value)
{
	void *field = (char *)config + row->offset;

	if (row->size == sizeof(uint64_t))
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
}

static bool configure_number(struct script_config *config, const struct number_row *row,
		const json_t *value, char *error)
{
	static const double factors[] = {
		[UNIT_COUNT] = 1,
		[UNIT_MS_TO_NS] = 1e6,
		[UNIT_PERCENT] = RATIO_ONE / 100.0,
		[UNIT_THOUSANDTHS] = 1000,
	};
	double number;

	if (!read_number(row->key, value, row->low, row->high, &number, error))
		return false;
	store(config, row, (uint64_t)(number * factors[row->unit] + 0.5));
	return true;
}

static void set_window(struct script_config *config, int is_count)
{
	config->settings.window.calls = is_count ? 100 : 0;
}

static void set_force(struct script_config *config, int force)
{
	config->settings.enabled = (force & 4) == 0;
	config->settings.force = force & 3;
}

static void set_eval(struct script_config *config, int is_snapshot)
{
	config->is_snapshot = is_snapshot;
}

static void set_half_open(struct script_config *config, int mode)
{
	config->settings.half_open = mode;
}

static void set_neutral(struct script_config *config, int mode)
{
	config->settings.neutral = mode;
}

static const struct {
	const char *key;
	const struct word *words;
	void (*set)(struct script_config *config, int value);
} word_rows[] = {
	{ "window", windows, set_window },
	{ "eval", evals, set_eval },
	{ "force", forces, set_force },
	{ "half_open", half_opens, set_half_open },
	{ "neutral_probe", neutrals, set_neutral },
};

bool script_configure(struct script_config *config, const char *key, const json_t *value,
		char *error)
{
	const struct word *word;
	double number;

	for (size_t i = 0; i < sizeof(number_rows) / sizeof(number_rows[0]); i++) {
		if (strcmp(number_rows[i].key, key) == 0)
			return configure_number(config, &number_rows[i], value, error);
	}
	for (size_t i = 0; i < sizeof(word_rows) / sizeof(word_rows[0]); i++) {
		if (strcmp(word_rows[i].key, key) != 0)
			continue;
		if (!read_word(key, value, word_rows[i].words, &word, error))
			return false;
		word_rows[i].set(config, word->value);
		return true;
	}
	if (strcmp(key, "snapshot_ms") == 0)
		return read_number(key, value, 1, MAX_DAYS_MS, &number, error);
	return expected(error, key, "a setting of the scenario language", value);
}

static struct script_config default_config(void)
{
	struct script_config config = { .settings = settings_default };

	config.settings.window = (struct window_shape){ .span_ns = 10000000000, .buckets = 10 };
	config.settings.volume = 20;
	config.settings.errors_ratio = RATIO_ONE / 2;
	config.settings.sleep_ms = 5000;
	config.settings.lease_ms = 0;
	config.settings.probes = 1;
	config.settings.slow_ratio = RATIO_ONE;
	config.settings.enabled = true;
	config.settings.rejects_count = true;
	return config;
}

static bool read_config(const json_t *json, struct script_config *config, char *error)
{
	const json_t *window = json_object_get(json, "window");
	const char *key;
	json_t *value;

	*config = default_config();
	if (json == NULL)
		return true;
	if (!json_is_object(json))
		return expected(error, "config", "an object", json);
	/* First, because it sets the default of count_size. */
	if (window != NULL && !script_configure(config, "window", window, error))
		return false;
	json_object_foreach((json_t *)json, key, value) {
		bool is_other_window = strcmp(key, "count_size") == 0 &&
			config->settings.window.calls == 0;

		if (strcmp(key, "window") == 0 || is_other_window)
			continue;
		if (!script_configure(config, key, value, error))
			return false;
	}
	return true;
}

static bool read_count(const json_t *json, const char *key, long long absent, long long *ret,
		char *error)
{
	const json_t *value = json_object_get(json, key);

	*ret = absent;
	if (value == NULL)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
			json_integer_value(value) > LLONG_MAX / 2000000)
		return expected(error, key, "a whole number from 0", value);
	*ret = json_integer_value(value);
	return true;
}

static bool read_text(const json_t *json, const char *key, bool is_needed, const char **ret,
		char *error)
{
	const json_t *value = json_object_get(json, key);

	*ret = json_string_value(value);
	if (*ret == NULL && (is_needed || value != NULL))
		return expected(error, key, "a text", value);
	return true;
}

static bool read_numbers(const json_t *json, struct step *step, char *error)
{
	const json_t *allow = json_object_get(json, "allow");

	if (allow != NULL && !json_is_boolean(allow))
		return expected(error, "allow", "true or false", allow);
	step->allow = allow == NULL ? -1 : json_is_true(allow);
	step->has_count = json_object_get(json, "n") != NULL;
	if (!read_count(json, "n", 1, &step->count, error))
		return false;
	if (step->count > (step->op == STEP_ACQUIRE ? MAX_ACQUIRES : MAX_CALLS))
		return expected(error, "n", "at most 100000 to acquire, 100000000 to call",
				json_object_get(json, "n"));
	return true;
}

static bool read_expectations(const json_t *json, struct step *step, char *error)
{
	return read_count(json, "value", -1, &step->value, error) &&
		read_count(json, "allowed", -1, &step->allowed, error) &&
		read_count(json, "total", -1, &step->total, error) &&
		read_count(json, "errors", -1, &step->errors, error) &&
		read_count(json, "pct", -1, &step->percent, error) &&
		read_count(json, "slow", -1, &step->slow, error);
}

static bool read_texts(const json_t *json, struct step *step, char *error)
{
	bool has_id = step->op == STEP_ACQUIRE || step->op == STEP_DONE;

	return read_text(json, "id", has_id, &step->id, error) &&
		read_text(json, "proc", step->op == STEP_DIE, &step->proc, error) &&
		read_text(json, "name", step->op == STEP_METRIC, &step->metric, error) &&
		read_text(json, "k", step->op == STEP_SET, &step->key, error);
}

static bool read_step(const json_t *json, struct step *step, char *error)
{
	const json_t *state = json_object_get(json, "state");
	const struct word *word;

	if (!json_is_object(json))
		return expected(error, "step", "an object", json);
	if (!read_count(json, "t", -1, &step->t_ms, error))
		return false;
	if (step->t_ms < 0)
		return expected(error, "t", "a whole number from 0", NULL);
	if (!read_word("op", json_object_get(json, "op"), ops, &word, error))
		return false;
	step->op = (enum step_op)word->value;
	step->state = -1;
	if (state != NULL) {
		if (!read_word("state", state, states, &word, error))
			return false;
		step->state = word->value;
	}
	if (step->op == STEP_DONE || step->op == STEP_CALL) {
		if (!read_word("out", json_object_get(json, "out"), outs, &word, error))
			return false;
		step->outcome = (enum outcome)word->value;
		step->is_slow = word->is_slow;
	}
	step->value_to_set = json_object_get(json, "v");
	if (!read_numbers(json, step, error) || !read_expectations(json, step, error) ||
			!read_texts(json, step, error))
		return false;
	if ((step->op == STEP_METRIC || step->op == STEP_INFLIGHT) && step->value < 0)
		return expected(error, "value", "a whole number from 0", NULL);
	return true;
}

static bool read_steps(const json_t *json, struct script *script, char *error)
{
	size_t count = json_array_size(json);

	if (!json_is_array(json) || count == 0)
		return expected(error, "steps", "a list of steps", json);
	script->steps = calloc(count, sizeof(*script->steps));
	if (script->steps == NULL)
		return expected(error, "steps", "memory for them", NULL);
	script->step_count = count;
	for (size_t i = 0; i < count; i++) {
		struct step *step = &script->steps[i];
		char why[SCRIPT_ERROR_SIZE];

		if (!read_step(json_array_get(json, i), step, why)) {
			snprintf(error, SCRIPT_ERROR_SIZE, "%.60s: step %zu: %.400s", script->id,
					i + 1, why);
			return false;
		}
		if (i > 0 && step->t_ms < step[-1].t_ms) {
			snprintf(error, SCRIPT_ERROR_SIZE,
					"%.60s: step %zu: t: expected at least %lld, "
					"got '%lld'",
					script->id, i + 1, step[-1].t_ms, step->t_ms);
			return false;
		}
		script->uses_slow |= step->is_slow || step->slow >= 0;
	}
	return true;
}

static bool read_script(const json_t *root, struct script *script, char *error)
{
	const json_t *requires = json_object_get(root, "requires");
	char why[SCRIPT_ERROR_SIZE];

	if (!json_is_object(root))
		return expected(error, "scenario", "an object", root);
	if (!read_text(root, "id", true, &script->id, error) ||
			!read_text(root, "title", false, &script->title, error))
		return false;
	if (requires != NULL && !json_is_array(requires))
		return expected(error, "requires", "a list", requires);
	if (!read_config(json_object_get(root, "config"), &script->config, why)) {
		snprintf(error, SCRIPT_ERROR_SIZE, "%.60s: config: %.400s", script->id, why);
		return false;
	}
	return read_steps(json_object_get(root, "steps"), script, error);
}

static int line_length(const char *line)
{
	size_t length = strcspn(line, "\r\n");

	return length < 60 ? (int)length : 60;
}

bool script_read(const char *line, struct script *ret, char *error)
{
	struct script script = { 0 };
	json_error_t why;

	script.root = json_loads(line, JSON_REJECT_DUPLICATES, &why);
	if (script.root == NULL) {
		snprintf(error, SCRIPT_ERROR_SIZE, "column %d: expected a JSON object (%.100s), "
						   "got '%.*s'",
				why.column, why.text, line_length(line), line);
		return false;
	}
	if (!read_script(script.root, &script, error)) {
		script_finish(&script);
		return false;
	}
	*ret = script;
	return true;
}

void script_finish(struct script *script)
{
	free(script->steps);
	json_decref(script->root);
}

bool script_requires(const struct script *script, const char *feature)
{
	const json_t *requires = json_object_get(script->root, "requires");
	size_t i;
	json_t *value;

	json_array_foreach((json_t *)requires, i, value) {
		if (json_is_string(value) && strcmp(json_string_value(value), feature) == 0)
			return true;
	}
	return false;
}
