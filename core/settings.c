/* SPDX-License-Identifier: MIT */
#include "core/settings.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/text.h"

#define MS_NS 1000000ull
#define COUNT_MAX 1000000u
#define PROBES_MAX 15
#define CALLS_MAX 992

static_assert(CALLS_MAX <= WINDOW_MAX_CALLS, "a window can hold what a rule may ask for");

const struct settings settings_default = {
	.window = { .span_ns = 10000 * MS_NS, .buckets = 10 },
	.errors_ratio = RATIO_ONE / 2,
	.volume = 20,
	.sleep_ms = 5000,
	.lease_ms = 5000,
	.probes = 1,
	.slow_ratio = RATIO_ONE,
	.abandon_ns = 1000 * MS_NS,
	.half_open = HALF_OPEN_ANY,
	.neutral = NEUTRAL_REOPEN,
	.force = FORCE_NONE,
	.guard = GUARD_EXCHANGE,
	.per = PER_ADDRESS,
	.refuse_errno = ECONNREFUSED,
	.enabled = true,
	.rejects_count = true,
};

/* Words stand in the order of their enums. */
static const char *const half_open_words[] = { "any", "rate", NULL };
static const char *const neutral_words[] = { "reopen", "release", NULL };
static const char *const rejects_words[] = { "ignore", "count", NULL };
static const char *const force_words[] = { "none", "open", "closed", NULL };
static const char *const enabled_words[] = { "no", "yes", NULL };
static const char *const guard_words[] = { "exchange", "connect", NULL };
static const char *const per_words[] = { "address", "host", "rule", NULL };
static const char *const preset_words[] = { "none", "hystrix", NULL };

/* What connect() on a TCP socket can fail with at once, and a program then knows what to do with. */
static const char *const refusal_words[] = { "ECONNREFUSED", "ECONNRESET", "ECONNABORTED",
	"ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL",
	"EACCES", "EPERM", NULL };

/* Known, and refused: a rule that counts on one of them must not look as if it worked. */
static const char *const later_words[] = { "timeout", "concurrency", "queue", "queue-wait",
	"connections", "fallback", "fallback-concurrency", "resolve-timeout", "resolve-pool",
	"resolve-pool-max", "resolve-queue", "resolve-queue-reject", "resolve-cache",
	"resolve-stale", NULL };

static void *field(const struct setting *row, struct settings *settings)
{
	return (char *)settings + row->offset;
}

static bool is_off(const struct setting *row, const char *value)
{
	return row->can_be_off && strcmp(value, "off") == 0;
}

static bool is_within(const struct setting *row, uint64_t value)
{
	return value >= row->low && value <= row->high;
}

static const char *read_ratio(const struct setting *row, struct settings *settings,
		const char *value)
{
	uint32_t ratio;
	const char *expected = text_ratio(value, &ratio);

	if (expected)
		return expected;
	if (!is_within(row, ratio))
		return row->limits;
	*(uint32_t *)field(row, settings) = ratio;
	return NULL;
}

static const char *read_count(const struct setting *row, struct settings *settings,
		const char *value)
{
	uint64_t count = 0;

	if (!is_off(row, value)) {
		if (text_count(value, &count) || !is_within(row, count))
			return row->limits;
	}
	*(uint32_t *)field(row, settings) = (uint32_t)count;
	return NULL;
}

static const char *read_ns(const struct setting *row, struct settings *settings, const char *value)
{
	uint64_t ns = 0;

	if (!is_off(row, value)) {
		const char *expected = text_duration(value, &ns);

		if (expected)
			return expected;
		if (!is_within(row, ns))
			return row->limits;
	}
	*(uint64_t *)field(row, settings) = ns;
	return NULL;
}

/* Rounds up, so that no positive duration becomes 0. */
static const char *read_ms(const struct setting *row, struct settings *settings, const char *value)
{
	uint64_t ns;
	const char *expected = text_duration(value, &ns);

	if (expected)
		return expected;
	uint64_t ms = ns / MS_NS + (ns % MS_NS != 0);
	if (!is_within(row, ms))
		return row->limits;
	*(uint32_t *)field(row, settings) = (uint32_t)ms;
	return NULL;
}

static const char *read_word(const struct setting *row, struct settings *settings, const char *value)
{
	int index = text_word_index(row->words, value);

	if (index < 0)
		return row->limits;
	*(unsigned int *)field(row, settings) = (unsigned int)index;
	return NULL;
}

static const char *read_switch(const struct setting *row, struct settings *settings,
		const char *value)
{
	int index = text_word_index(row->words, value);

	if (index < 0)
		return row->limits;
	*(bool *)field(row, settings) = index == 1;
	return NULL;
}

static const char *read_calls(const char *value, struct window_shape *window)
{
	static const char expected[] = "a window from 1calls to 992calls";
	char digits[8];
	uint64_t calls;

	text_copy(digits, sizeof(digits), value);
	digits[strspn(digits, "0123456789")] = '\0';
	const char *unit = value + strlen(digits);
	if (strcmp(unit, "calls") != 0 && strcmp(unit, "call") != 0)
		return expected;
	if (text_count(digits, &calls) || calls < 1 || calls > CALLS_MAX)
		return expected;
	window->calls = (uint32_t)calls;
	return NULL;
}

static const char *read_window(const struct setting *row, struct settings *settings,
		const char *value)
{
	if (strstr(value, "call"))
		return read_calls(value, &settings->window);
	const char *expected = read_ns(row, settings, value);
	if (!expected)
		settings->window.calls = 0;
	return expected;
}

static const char *read_probes(const struct setting *row, struct settings *settings,
		const char *value)
{
	uint32_t ratio;

	if (!strpbrk(value, "%/")) {
		const char *expected = read_count(row, settings, value);

		if (!expected)
			settings->probes_ratio = 0;
		return expected;
	}
	if (text_ratio(value, &ratio) || ratio == 0)
		return row->limits;
	settings->probes = 1;
	settings->probes_ratio = ratio;
	return NULL;
}

/* 2..60s */
static const char *read_backoff(const struct setting *row, struct settings *settings,
		const char *value)
{
	const char *dots = strstr(value, "..");
	char factor_text[16];
	uint64_t factor = 0, cap_ns = 0;

	if (!is_off(row, value)) {
		if (!dots || (size_t)(dots - value) >= sizeof(factor_text))
			return row->limits;
		text_copy(factor_text, (size_t)(dots - value) + 1, value);
		if (text_thousandths(factor_text, &factor) || factor < 1000 || factor > 100000)
			return row->limits;
		if (text_duration(dots + 2, &cap_ns) || cap_ns == 0 || cap_ns > row->high * MS_NS)
			return row->limits;
	}
	settings->backoff_factor_thousandths = (uint32_t)factor;
	settings->backoff_max_ms = (uint32_t)((cap_ns + MS_NS - 1) / MS_NS);
	return NULL;
}

static const char *read_refusal(const struct setting *row, struct settings *settings,
		const char *value)
{
	if (text_word_index(row->words, value) < 0)
		return row->limits;
	settings->refuse_errno = error_from_name(value);
	return NULL;
}

static const char *read_error(const struct setting *row, struct settings *settings,
		const char *value)
{
	int error = error_from_name(value);

	if (error == 0)
		return row->limits;
	error_set_add(field(row, settings), error);
	return NULL;
}

static const char *read_preset(const struct setting *row, struct settings *settings,
		const char *value);

static const char until_a_day[] = "a duration from 1ms to 24h";
static const char error_names[] = "names of errors such as ECONNRESET or EAI_AGAIN";

static const struct setting table[] = {
#define FIELD(name) .offset = offsetof(struct settings, name)
#define RANGE(from, to) .low = (from), .high = (to)
	{ "errors", "50%", "share of failed calls in the window that opens the circuit",
		read_ratio, FIELD(errors_ratio), RANGE(0, RATIO_ONE) },
	{ "volume", "20", "calls in the window before their share of errors is looked at",
		read_count, FIELD(volume), RANGE(1, COUNT_MAX),
		.limits = "a whole number from 1 to 1000000" },
	{ "window", "10s", "how far back calls count; or the last calls, as in 100calls",
		read_window, FIELD(window.span_ns), RANGE(MS_NS, SETTINGS_MAX_MS * MS_NS),
		.limits = until_a_day },
	{ "buckets", "10", "steps in which the window moves on",
		read_count, FIELD(window.buckets), RANGE(1, WINDOW_MAX_BUCKETS),
		.limits = "a whole number from 1 to 64" },
	{ "sleep", "5s", "how long an open circuit waits before it lets a probe through",
		read_ms, FIELD(sleep_ms), RANGE(1, SETTINGS_MAX_MS), .limits = until_a_day },
	{ "probes", "1", "calls that half-open admits and needs; or the share of calls it admits, as "
			 "in 20%",
		read_probes, FIELD(probes), RANGE(1, PROBES_MAX),
		.limits = "a whole number from 1 to 15, or a ratio such as 20%" },
	{ "half-open", "any", "any: one failed probe opens; rate: the probes are judged by errors",
		read_word, FIELD(half_open), .words = half_open_words, .limits = "any or rate" },
	{ "lease", "= sleep", "how long a probe may stay unreported before one more is let through",
		read_ms, FIELD(lease_ms), RANGE(1, SETTINGS_MAX_MS), .limits = until_a_day },
	{ "consecutive", "off", "also open on this many failures in a row",
		read_count, FIELD(consecutive), RANGE(1, COUNT_MAX), .can_be_off = true,
		.limits = "a whole number from 1 to 1000000, or off" },
	{ "slow", "off", "calls that take longer are slow",
		read_ns, FIELD(slow_ns), RANGE(1, SETTINGS_MAX_MS * MS_NS), .can_be_off = true,
		.limits = "a duration from 1ns to 24h, or off" },
	{ "slow-rate", "100%", "share of slow calls in the window that opens the circuit",
		read_ratio, FIELD(slow_ratio), RANGE(1, RATIO_ONE),
		.limits = "a ratio above 0%, at most 100%" },
	{ "backoff", "off", "2..60s: each failed probe doubles the sleep, up to a minute",
		read_backoff, FIELD(backoff_max_ms), RANGE(1, SETTINGS_MAX_MS), .can_be_off = true,
		.limits = "a factor from 1 to 100 and a duration, such as 2..60s, or off" },
	{ "neutral", "reopen", "what a cancelled or ignored probe does: open again, or release its slot",
		read_word, FIELD(neutral), .words = neutral_words, .limits = "reopen or release" },
	{ "rejects", "count", "do rejected calls count as errors: count or ignore",
		read_switch, FIELD(rejects_count), .words = rejects_words,
		.limits = "count or ignore" },
	{ "force", "none", "hold the circuit open or closed",
		read_word, FIELD(force), .words = force_words, .limits = "none, open or closed" },
	{ "enabled", "yes", "no: calls pass and nothing is counted",
		read_switch, FIELD(enabled), .words = enabled_words, .limits = "yes or no" },
	{ "abandon", "1s", "a call given up after waiting this long counts as a timeout",
		read_ns, FIELD(abandon_ns), RANGE(MS_NS, SETTINGS_MAX_MS * MS_NS),
		.limits = until_a_day },
	{ "guard", "exchange", "connect: judge new connections only, not what is asked on them",
		read_word, FIELD(guard), .words = guard_words, .limits = "exchange or connect" },
	{ "per", "address", "what has a circuit of its own: each address and port, host, or the rule",
		read_word, FIELD(per), .words = per_words, .limits = "address, host or rule" },
	{ "error", "ECONNREFUSED", "what a refused connect fails with",
		read_refusal, FIELD(refuse_errno), .words = refusal_words,
		.limits = "an error of connect such as ECONNREFUSED, ETIMEDOUT or EHOSTUNREACH" },
	{ "ignore", "none", "errors that count neither as success nor as failure",
		read_error, FIELD(ignore), .is_list = true, .limits = error_names },
	{ "fail", "none", "errors that count as failures",
		read_error, FIELD(fail), .is_list = true, .limits = error_names },
	{ "preset", "none", "hystrix: the breaker as Hystrix sets it, where nothing else is given (its "
			    "timeout and concurrency are not in this version)",
		read_preset, .words = preset_words, .limits = "none or hystrix" },
#undef FIELD
#undef RANGE
};

#define ROW_COUNT (sizeof(table) / sizeof(table[0]))

const struct setting *settings_table(size_t *ret_count)
{
	*ret_count = ROW_COUNT;
	return table;
}

const struct setting *setting_find(const char *name)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}

static bool is_given(const struct settings *settings, const struct setting *row)
{
	return settings->given >> (row - table) & 1;
}

static bool is_given_by_name(const struct settings *settings, const char *name)
{
	return is_given(settings, setting_find(name));
}

static const char *read_preset(const struct setting *row, struct settings *settings,
		const char *value)
{
	static const char *const hystrix[][2] = {
		{ "errors", "50%" }, { "volume", "20" }, { "window", "10s" }, { "buckets", "10" },
		{ "sleep", "5s" }, { "probes", "1" }, { "half-open", "any" },
		{ "neutral", "reopen" }, { "rejects", "count" },
	};
	int preset = text_word_index(row->words, value);

	if (preset < 0)
		return row->limits;
	if (preset == 0)
		return NULL;
	for (size_t i = 0; i < sizeof(hystrix) / sizeof(hystrix[0]); i++) {
		const struct setting *other = setting_find(hystrix[i][0]);

		if (!is_given(settings, other))
			other->read(other, settings, hystrix[i][1]);
	}
	return NULL;
}

static size_t word_count(const char *const *words)
{
	size_t count = 0;

	while (words && words[count])
		count++;
	return count;
}

static void say_unknown(const char *name, char *error, size_t size)
{
	const char *names[ROW_COUNT];
	char quoted[TEXT_QUOTE_SIZE];

	text_quote(quoted, sizeof(quoted), name, strnlen(name, TEXT_QUOTE_SIZE));
	if (text_word_index(later_words, name) >= 0) {
		text_format(error, size, "%s: not in this version of shunt", quoted);
		return;
	}
	for (size_t i = 0; i < ROW_COUNT; i++)
		names[i] = table[i].name;
	const char *nearest = text_nearest(name, names, ROW_COUNT);
	if (!nearest)
		nearest = text_nearest(name, later_words, word_count(later_words));
	if (nearest)
		text_format(error, size, "%s: no such setting, did you mean %s?", quoted, nearest);
	else
		text_format(error, size, "%s: no such setting", quoted);
}

static void say_expected(const struct setting *row, const char *expected, const char *value,
		char *error, size_t size)
{
	char quoted[TEXT_QUOTE_SIZE];
	const char *nearest = row->is_list ? error_nearest_name(value) :
					     text_nearest(value, row->words, word_count(row->words));

	text_quote(quoted, sizeof(quoted), value, strnlen(value, TEXT_QUOTE_SIZE));
	if (nearest)
		text_format(error, size, "%s: expected %s, got '%s', did you mean %s?", row->name,
				expected, quoted, nearest);
	else
		text_format(error, size, "%s: expected %s, got '%s'", row->name, expected, quoted);
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
	changed.given |= 1ull << (row - table);
	*settings = changed;
	return true;
}

static bool finish_window(struct settings *settings, char *error, size_t size)
{
	struct window_shape *window = &settings->window;

	if (window->calls == 0)
		return true;
	if (is_given_by_name(settings, "buckets")) {
		text_format(error, size, "buckets: a window of calls has none");
		return false;
	}
	if (settings->volume > window->calls) {
		if (is_given_by_name(settings, "volume")) {
			text_format(error, size, "volume: expected at most the %u calls of the window, got '%u'",
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

	if (!is_given_by_name(settings, "lease"))
		settings->lease_ms = settings->sleep_ms;
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
		text_format(error, size, "half-open: rate needs a number of probes, not a share of calls");
		return false;
	}
	return finish_window(settings, error, size);
}
