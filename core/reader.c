/* SPDX-License-Identifier: MIT */
#include "core/reader.h"

#include <assert.h>
#include <string.h>

#include "core/text.h"

#define MS_NS 1000000ull
#define CALLS_MAX 992

static_assert(CALLS_MAX <= WINDOW_MAX_CALLS, "a window can hold what a rule may ask for");

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

const char *reader_ratio(const struct setting *row, struct settings *settings,
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

const char *reader_count(const struct setting *row, struct settings *settings,
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

const char *reader_ns(const struct setting *row, struct settings *settings, const char *value)
{
	uint64_t ns = 0;

	if (!is_off(row, value)) {
		const char *expected = text_duration(value, &ns);

		if (text_is_too_large(expected) || (!expected && !is_within(row, ns)))
			return row->limits;
		if (expected && row->can_be_off)
			return "a duration such as 250ms, 5s or 1m, or off";
		if (expected)
			return expected;
	}
	*(uint64_t *)field(row, settings) = ns;
	return NULL;
}

/* Rounds up, so that no positive duration becomes 0. */
const char *reader_ms(const struct setting *row, struct settings *settings, const char *value)
{
	uint64_t ns;
	const char *expected = text_duration(value, &ns);

	if (text_is_too_large(expected))
		return row->limits;
	if (expected)
		return expected;
	uint64_t ms = ns / MS_NS + (ns % MS_NS != 0);
	if (!is_within(row, ms))
		return row->limits;
	*(uint32_t *)field(row, settings) = (uint32_t)ms;
	return NULL;
}

const char *reader_word(
		const struct setting *row, struct settings *settings, const char *value)
{
	int index = text_word_index(row->words, value);

	if (index < 0)
		return row->limits;
	*(unsigned int *)field(row, settings) = (unsigned int)index;
	return NULL;
}

const char *reader_switch(const struct setting *row, struct settings *settings,
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

const char *reader_window(const struct setting *row, struct settings *settings,
		const char *value)
{
	uint64_t ns;

	if (strstr(value, "call"))
		return read_calls(value, &settings->window);
	if (text_duration(value, &ns))
		return "a duration such as 10s, or a number of calls such as 100calls";
	const char *expected = reader_ns(row, settings, value);
	if (!expected)
		settings->window.calls = 0;
	return expected;
}

const char *reader_probes(const struct setting *row, struct settings *settings,
		const char *value)
{
	uint32_t ratio;

	if (!strpbrk(value, "%/")) {
		const char *expected = reader_count(row, settings, value);

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
const char *reader_backoff(const struct setting *row, struct settings *settings,
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

const char *reader_refusal(const struct setting *row, struct settings *settings,
		const char *value)
{
	if (text_word_index(row->words, value) < 0)
		return row->limits;
	settings->refuse_errno = error_from_name(value);
	return NULL;
}

const char *reader_error(const struct setting *row, struct settings *settings,
		const char *value)
{
	int error = error_from_name(value);

	if (error == 0)
		return row->limits;
	error_set_add(field(row, settings), error);
	return NULL;
}

const char *reader_place(const struct setting *row, struct settings *settings, const char *value)
{
	struct fallback *fallback = field(row, settings);
	const char *colon = strrchr(value, ':');
	char text[64];
	struct address address;
	uint16_t low, high;

	if (strcmp(value, "none") == 0) {
		*fallback = (struct fallback){ 0 };
		return NULL;
	}
	if (!colon || (size_t)(colon - value) >= sizeof(text))
		return row->limits;
	text_copy(text, (size_t)(colon - value) + 1, value);
	if (strchr(text, ':') && text[0] != '[')
		return row->limits;
	if (!address_parse(text, &address) || text_ports(colon + 1, &low, &high) || low != high ||
			low == 0)
		return row->limits;
	*fallback = (struct fallback){ address, low };
	return NULL;
}
