/* SPDX-License-Identifier: MIT */
#include "core/variable_table.h"

#include <stddef.h>
#include <string.h>

#include "core/config_rules.h"
#include "core/text.h"

#define PREFIX "SHUNT_"

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

/* Who asks for an end that we cannot read asked for one. */
static const char *read_expire(const struct variable *variable, void *record, const char *value)
{
	struct config *config = record;
	const char *expected = variable_duration(variable, record, value);

	config->has_bad_bound |= expected != NULL;
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
	{ PREFIX "EXPIRE", read_expire, FIELD(expire_ns), NULL, "a duration above 0s" },
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

const struct variable *variable_table(size_t *ret_count)
{
	*ret_count = sizeof(variables) / sizeof(variables[0]);
	return variables;
}
