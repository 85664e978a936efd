/* SPDX-License-Identifier: MIT */
#include "cli/describe.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/setting_table.h"
#include "core/error_set.h"
#include "core/format.h"

#define MS_NS 1000000u
#define VALUE_SIZE 512
#define DURATION_SIZE 24
#define ERRNO_MAX 191
#define EAI_MAX 127

typedef void write_function(const struct setting *row, const struct settings *settings,
		char *ret);

static const void *field(const struct setting *row, const struct settings *settings)
{
	return (const char *)settings + row->offset;
}

/* Needs DURATION_SIZE at `ret`. */
static void write_duration(char *ret, uint64_t ns)
{
	static const struct { uint64_t ns; const char *name; } units[] = {
		{ 3600000000000u, "h" }, { 60000000000u, "m" }, { 1000000000u, "s" },
		{ MS_NS, "ms" }, { 1000u, "us" }, { 1u, "ns" },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns % units[i].ns != 0 || ns == 0)
			continue;
		snprintf(ret, DURATION_SIZE, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
		return;
	}
	snprintf(ret, DURATION_SIZE, "off");
}

/* `value` in units of 1/`one`, a power of ten, without trailing zeros. */
static void write_decimal(char *ret, uint32_t value, uint32_t one)
{
	int length = snprintf(ret, VALUE_SIZE, "%" PRIu32, value / one);

	if (value % one == 0)
		return;
	ret[length++] = '.';
	for (uint32_t rest = value % one * 10; rest != 0; rest = rest % one * 10)
		ret[length++] = (char)('0' + rest / one);
	ret[length] = '\0';
}

static void write_share(char *ret, uint32_t ratio)
{
	text_share(ret, VALUE_SIZE, ratio);
}

static void write_ratio(const struct setting *row, const struct settings *settings, char *ret)
{
	write_share(ret, *(const uint32_t *)field(row, settings));
}

static void write_count(const struct setting *row, const struct settings *settings, char *ret)
{
	uint32_t count = *(const uint32_t *)field(row, settings);

	if (count == 0)
		snprintf(ret, VALUE_SIZE, "off");
	else
		snprintf(ret, VALUE_SIZE, "%" PRIu32, count);
}

static void write_ns(const struct setting *row, const struct settings *settings, char *ret)
{
	write_duration(ret, *(const uint64_t *)field(row, settings));
}

static void write_ms(const struct setting *row, const struct settings *settings, char *ret)
{
	write_duration(ret, *(const uint32_t *)field(row, settings) * (uint64_t)MS_NS);
}

static void write_word(const struct setting *row, const struct settings *settings, char *ret)
{
	snprintf(ret, VALUE_SIZE, "%s", row->words[*(const unsigned int *)field(row, settings)]);
}

static void write_switch(const struct setting *row, const struct settings *settings, char *ret)
{
	snprintf(ret, VALUE_SIZE, "%s", row->words[*(const bool *)field(row, settings)]);
}

static void write_window(const struct setting *row, const struct settings *settings, char *ret)
{
	if (settings->window.calls == 0)
		write_ns(row, settings, ret);
	else
		snprintf(ret, VALUE_SIZE, "%" PRIu32 "calls", settings->window.calls);
}

/* A window of calls has no buckets; an unset lease is the sleep window. "" is the default. */
static void write_buckets(const struct setting *row, const struct settings *settings, char *ret)
{
	if (settings->window.calls == 0)
		write_count(row, settings, ret);
}

static void write_lease(const struct setting *row, const struct settings *settings, char *ret)
{
	if (settings->lease_ms != settings->sleep_ms)
		write_ms(row, settings, ret);
}

static void write_probes(const struct setting *row, const struct settings *settings, char *ret)
{
	if (settings->probes_ratio)
		write_share(ret, settings->probes_ratio);
	else
		write_count(row, settings, ret);
}

static void write_backoff(const struct setting *row, const struct settings *settings, char *ret)
{
	uint32_t factor = settings->backoff_factor_thousandths;

	(void)row;
	if (factor == 0)
		return;
	write_decimal(ret, factor, 1000);
	strcat(ret, "..");
	write_duration(ret + strlen(ret), settings->backoff_max_ms * (uint64_t)MS_NS);
}

static void write_error(const struct setting *row, const struct settings *settings, char *ret)
{
	snprintf(ret, VALUE_SIZE, "%s", error_name(*(const int *)field(row, settings)));
}

static void add_name(char *ret, const char *name)
{
	size_t length = strlen(ret);

	if (name && length + strlen(name) + 2 < VALUE_SIZE)
		snprintf(ret + length, VALUE_SIZE - length, "%s%s", length ? "+" : "", name);
}

static void write_errors(const struct setting *row, const struct settings *settings, char *ret)
{
	const struct error_set *set = field(row, settings);

	for (int error = 1; error <= ERRNO_MAX; error++) {
		if (error_set_has_errno(set, error))
			add_name(ret, error_name(error));
	}
	for (int error = 1; error <= EAI_MAX; error++) {
		if (error_set_has_eai(set, -error))
			add_name(ret, error_name(-error));
	}
}

static void write_fallback(const struct setting *row, const struct settings *settings, char *ret)
{
	const struct fallback *fallback = field(row, settings);
	bool is_v6 = fallback->address.family == 6;
	char address[64];

	if (fallback->address.family == 0)
		return;
	snprintf(ret, VALUE_SIZE, "%s%s%s:%u", is_v6 ? "[" : "",
			address_format(&fallback->address, address), is_v6 ? "]" : "",
			(unsigned int)fallback->port);
}

/* Told where it is more than it would be by itself. */
static void write_pool_max(const struct setting *row, const struct settings *settings, char *ret)
{
	if (settings->resolve_pool_max != settings->resolve_pool)
		write_count(row, settings, ret);
}

/* `preset` is not here: what it sets is. */
static const struct {
	const char *name;
	write_function *write;
} writers[] = {
	{ "errors", write_ratio },
	{ "volume", write_count },
	{ "window", write_window },
	{ "buckets", write_buckets },
	{ "sleep", write_ms },
	{ "probes", write_probes },
	{ "half-open", write_word },
	{ "lease", write_lease },
	{ "consecutive", write_count },
	{ "slow", write_ns },
	{ "slow-rate", write_ratio },
	{ "backoff", write_backoff },
	{ "neutral", write_word },
	{ "rejects", write_switch },
	{ "force", write_word },
	{ "enabled", write_switch },
	{ "abandon", write_ns },
	{ "timeout", write_ns },
	{ "concurrency", write_count },
	{ "queue", write_count },
	{ "queue-wait", write_ns },
	{ "connections", write_count },
	{ "fallback", write_fallback },
	{ "fallback-concurrency", write_count },
	{ "resolve-timeout", write_ns },
	{ "resolve-pool", write_count },
	{ "resolve-pool-max", write_pool_max },
	{ "resolve-queue", write_count },
	{ "resolve-queue-reject", write_count },
	{ "resolve-cache", write_ns },
	{ "resolve-stale", write_ns },
	{ "guard", write_word },
	{ "per", write_word },
	{ "error", write_error },
	{ "ignore", write_errors },
	{ "fail", write_errors },
};

const char *describe_settings(const struct settings *settings, char *ret)
{
	size_t length = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		const struct setting *row = setting_find(writers[i].name);
		char value[VALUE_SIZE] = "", usual[VALUE_SIZE] = "";

		if (!row)
			continue;
		writers[i].write(row, settings, value);
		writers[i].write(row, &settings_default, usual);
		if (value[0] == '\0' || strcmp(value, usual) == 0)
			continue;
		if (length + strlen(row->name) + strlen(value) + 3 > DESCRIBE_SIZE)
			break;
		length += (size_t)snprintf(ret + length, DESCRIBE_SIZE - length, "%s%s=%s",
				length ? " " : "", row->name, value);
	}
	return ret;
}
