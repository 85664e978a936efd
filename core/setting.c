/* SPDX-License-Identifier: MIT */
#include "core/setting.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "core/text.h"

#define MS_NS 1000000ull
#define DAY_NS (SETTINGS_MAX_MS * MS_NS)
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

/* What connect() on a TCP socket can fail with at once, and a program then knows what to do with.
 */
static const char *const refusal_words[] = { "ECONNREFUSED", "ECONNRESET", "ECONNABORTED",
	"ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN", "EADDRNOTAVAIL",
	"EACCES", "EPERM", NULL };

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

static const char *read_word(
		const struct setting *row, struct settings *settings, const char *value)
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
#define FIELD(reader, name) .read = read_##reader, .offset = offsetof(struct settings, name)
#define RANGE(from, to) .low = (from), .high = (to)
	{ "errors", "50%", "share of failed calls in the window that opens the circuit",
		FIELD(ratio, errors_ratio), RANGE(0, RATIO_ONE) },
	{ "volume", "20", "calls in the window before their share of errors is looked at",
		FIELD(count, volume), RANGE(1, COUNT_MAX),
		.limits = "a whole number from 1 to 1000000" },
	{ "window", "10s", "how far back calls count; or how many, as in 100calls",
		FIELD(window, window.span_ns), RANGE(MS_NS, DAY_NS), .limits = until_a_day },
	{ "buckets", "10", "steps in which the window moves on",
		FIELD(count, window.buckets), RANGE(1, WINDOW_MAX_BUCKETS),
		.limits = "a whole number from 1 to 64" },
	{ "sleep", "5s", "how long an open circuit waits before it lets a probe through",
		FIELD(ms, sleep_ms), RANGE(1, SETTINGS_MAX_MS), .limits = until_a_day },
	{ "probes", "1", "calls that half-open admits and needs; or the share it admits, as in 20%",
		FIELD(probes, probes), RANGE(1, PROBES_MAX),
		.limits = "a whole number from 1 to 15, or a ratio such as 20%" },
	{ "half-open", "any", "any: one failed probe opens; rate: errors judges the probes",
		FIELD(word, half_open), .words = half_open_words, .limits = "any or rate" },
	{ "lease", "= sleep", "how long a probe may stay unreported before another is let through",
		FIELD(ms, lease_ms), RANGE(1, SETTINGS_MAX_MS), .limits = until_a_day },
	{ "consecutive", "off", "also open on this many failures in a row",
		FIELD(count, consecutive), RANGE(1, COUNT_MAX), .can_be_off = true,
		.limits = "a whole number from 1 to 1000000, or off" },
	{ "slow", "off", "calls that take longer are slow",
		FIELD(ns, slow_ns), RANGE(1, DAY_NS), .can_be_off = true,
		.limits = "a duration from 1ns to 24h, or off" },
	{ "slow-rate", "100%", "share of slow calls in the window that opens the circuit",
		FIELD(ratio, slow_ratio), RANGE(1, RATIO_ONE),
		.limits = "a ratio above 0%, at most 100%" },
	{ "backoff", "off", "2..60s: each failed probe doubles the sleep, up to a minute",
		FIELD(backoff, backoff_max_ms), RANGE(1, SETTINGS_MAX_MS), .can_be_off = true,
		.limits = "a factor from 1 to 100 and a duration, such as 2..60s, or off" },
	{ "neutral", "reopen", "a cancelled or ignored probe: reopen, or release its slot",
		FIELD(word, neutral), .words = neutral_words, .limits = "reopen or release" },
	{ "rejects", "count", "do rejected calls count as errors: count or ignore",
		FIELD(switch, rejects_count), .words = rejects_words,
		.limits = "count or ignore" },
	{ "force", "none", "hold the circuit open or closed",
		FIELD(word, force), .words = force_words, .limits = "none, open or closed" },
	{ "enabled", "yes", "no: calls pass and nothing is counted",
		FIELD(switch, enabled), .words = enabled_words, .limits = "yes or no" },
	{ "abandon", "1s", "a call given up after waiting this long counts as a timeout",
		FIELD(ns, abandon_ns), RANGE(MS_NS, DAY_NS), .limits = until_a_day },
	{ "guard", "exchange", "connect: judge new connections only, not what is asked on them",
		FIELD(word, guard), .words = guard_words, .limits = "exchange or connect" },
	{ "per", "address", "what has a circuit: each address and port, each host, or the rule",
		FIELD(word, per), .words = per_words, .limits = "address, host or rule" },
	{ "error", "ECONNREFUSED", "what a refused connect fails with",
		FIELD(refusal, refuse_errno), .words = refusal_words,
		.limits = "an error of connect such as ECONNREFUSED, ETIMEDOUT or EHOSTUNREACH" },
	{ "ignore", "none", "errors that count neither as success nor as failure",
		FIELD(error, ignore), .is_list = true, .limits = error_names },
	{ "fail", "none", "errors that count as failures",
		FIELD(error, fail), .is_list = true, .limits = error_names },
	{ "preset", "none",
		"hystrix: the breaker as Hystrix sets it, where nothing else is given (its timeout "
		"and concurrency are not in this version)",
		.read = read_preset, .words = preset_words, .limits = "none or hystrix" },
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

bool setting_is_given(const struct settings *settings, const struct setting *row)
{
	return settings->given >> (row - table) & 1;
}

void setting_give(struct settings *settings, const struct setting *row)
{
	settings->given |= 1ull << (row - table);
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

		if (!setting_is_given(settings, other))
			other->read(other, settings, hystrix[i][1]);
	}
	return NULL;
}
