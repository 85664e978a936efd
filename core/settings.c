/* SPDX-License-Identifier: MIT */
#include "core/setting_table.h"
#include "core/settings.h"

#include <string.h>

#include "core/text.h"

static size_t word_count(const char *const *words)
{
	size_t count = 0;

	while (words && words[count])
		count++;
	return count;
}

static void say_unknown(const char *name, char *error, size_t size)
{
	const char *names[SETTINGS_MAX];
	size_t count;
	const struct setting *table = settings_table(&count);

	for (size_t i = 0; i < count; i++)
		names[i] = table[i].name;
	size_t used = text_format(error, size, "setting: ");
	text_expected(error + used, size - used, "a known one", name, strlen(name),
			text_nearest(name, names, count));
}

static void say_expected(const struct setting *row, const char *expected, const char *value,
		char *error, size_t size)
{
	const char *nearest =
			row->is_list ? error_nearest_name(value)
				     : text_nearest(value, row->words, word_count(row->words));
	size_t used = text_format(error, size, "%s: ", row->name);

	text_expected(error + used, size - used, expected, value, strlen(value), nearest);
}

/* True, or `error` filled. Goes piece by piece through a list. */
static bool read_value(const struct setting *row, struct settings *settings, const char *value,
		char *error, size_t size)
{
	char piece[TEXT_QUOTE_SIZE];
	const char *expected;

	if (!row->is_list) {
		expected = row->read(row, settings, value);
		if (expected)
			say_expected(row, expected, value, error, size);
		return !expected;
	}
	for (;;) {
		size_t length = strcspn(value, ",+|");

		text_copy(piece, length < sizeof(piece) ? length + 1 : sizeof(piece), value);
		expected = row->read(row, settings, piece);
		if (expected) {
			say_expected(row, expected, piece, error, size);
			return false;
		}
		if (value[length] == '\0')
			return true;
		value += length + 1;
	}
}

bool settings_apply(struct settings *settings, const char *name, const char *value, char *error,
		size_t size)
{
	const struct setting *row = setting_find(name);
	struct settings changed = *settings;

	if (!row) {
		say_unknown(name, error, size);
		return false;
	}
	if (!read_value(row, &changed, value, error, size))
		return false;
	setting_give(&changed, row);
	*settings = changed;
	return true;
}

static bool is_given(const struct settings *settings, const char *name)
{
	return setting_is_given(settings, setting_find(name));
}

static bool finish_window(struct settings *settings, char *error, size_t size)
{
	struct window_shape *window = &settings->window;

	if (window->calls == 0)
		return true;
	if (is_given(settings, "buckets")) {
		text_format(error, size, "buckets: a window of calls has none");
		return false;
	}
	if (settings->volume > window->calls) {
		if (is_given(settings, "volume")) {
			text_format(error, size,
					"volume: expected at most the %u calls of the window, got "
					"'%u'",
					window->calls, settings->volume);
			return false;
		}
		settings->volume = window->calls;
	}
	window->span_ns = 0;
	window->buckets = 0;
	return true;
}

bool settings_finish(struct settings *settings, char *error, size_t size)
{
	int common = error_set_common(&settings->ignore, &settings->fail);

	if (!is_given(settings, "lease"))
		settings->lease_ms = settings->sleep_ms;
	if (!is_given(settings, "resolve-pool-max"))
		settings->resolve_pool_max = settings->resolve_pool;
	if (settings->resolve_pool_max < settings->resolve_pool) {
		text_format(error, size,
				"resolve-pool-max: expected at least the resolve-pool of %u, got "
				"'%u'",
				settings->resolve_pool, settings->resolve_pool_max);
		return false;
	}
	if (common) {
		text_format(error, size, "fail: %s is in ignore too", error_name(common));
		return false;
	}
	if (settings->backoff_factor_thousandths && settings->backoff_max_ms < settings->sleep_ms) {
		text_format(error, size, "backoff: expected a limit of at least the sleep of %ums",
				settings->sleep_ms);
		return false;
	}
	if (settings->half_open == HALF_OPEN_RATE && settings->probes_ratio) {
		text_format(error, size,
				"half-open: rate needs a number of probes, not a share of calls");
		return false;
	}
	return finish_window(settings, error, size);
}
