/* SPDX-License-Identifier: MIT */
#include "core/setting_table.h"

#include <errno.h>
#include <string.h>

#include "core/bulkhead.h"
#include "core/reader.h"
#include "core/text.h"

#define MS_NS 1000000ull
#define DAY_NS (SETTINGS_MAX_MS * MS_NS)
#define COUNT_MAX 1000000u
#define PROBES_MAX 15
#define POOL_MAX 64

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

static const char *read_preset(const struct setting *row, struct settings *settings,
		const char *value);

static const char until_a_day[] = "a duration from 1ms to 24h";
static const char off_or_until_a_day[] = "off, or a duration from 1ms to 24h";
static const char places[] = "a whole number from 0 to 1024";
static const char off_or_places[] = "off, or a whole number from 1 to 1024";
static const char threads[] = "a whole number from 1 to 64";
static const char error_names[] = "names of errors such as ECONNRESET or EAI_AGAIN";

static const struct setting table[] = {
#define FIELD(reader, name) .read = reader_##reader, .offset = offsetof(struct settings, name)
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
	{ "timeout", "off", "a call that takes longer is ended and fails with ETIMEDOUT",
		FIELD(ns, timeout_ns), RANGE(MS_NS, DAY_NS), .limits = off_or_until_a_day,
		.can_be_off = true },
	{ "concurrency", "off", "calls in flight at once, over all processes",
		FIELD(count, concurrency), RANGE(1, BULKHEAD_MAX), .limits = off_or_places,
		.can_be_off = true },
	{ "queue", "0", "blocking calls that may wait for another to end",
		FIELD(count, queue), RANGE(0, BULKHEAD_MAX), .limits = places },
	{ "queue-wait", "1s", "how long they wait",
		FIELD(ns, queue_wait_ns), RANGE(MS_NS, DAY_NS), .limits = until_a_day },
	{ "connections", "off", "open connections at once, over all processes",
		FIELD(count, connections), RANGE(1, BULKHEAD_MAX), .limits = off_or_places,
		.can_be_off = true },
	{ "fallback", "none", "where connects go that the target would refuse",
		FIELD(place, fallback),
		.limits = "an address and port such as 127.0.0.1:8080 or [::1]:8080, or none" },
	{ "fallback-concurrency", "10", "calls in flight to the fallback",
		FIELD(count, fallback_concurrency), RANGE(1, BULKHEAD_MAX),
		.limits = "a whole number from 1 to 1024" },
	{ "resolve-timeout", "off", "a lookup that takes longer fails with EAI_AGAIN",
		FIELD(ns, resolve_timeout_ns), RANGE(MS_NS, DAY_NS), .limits = off_or_until_a_day,
		.can_be_off = true },
	{ "resolve-pool", "10", "threads that look names up for the program",
		FIELD(count, resolve_pool), RANGE(1, POOL_MAX), .limits = threads },
	{ "resolve-pool-max", "= resolve-pool", "how many more there may be when the queue is full",
		FIELD(count, resolve_pool_max), RANGE(1, POOL_MAX), .limits = threads },
	{ "resolve-queue", "0", "lookups that may wait for a thread",
		FIELD(count, resolve_queue), RANGE(0, BULKHEAD_MAX), .limits = places },
	{ "resolve-queue-reject", "5", "how many of them may wait before more are rejected",
		FIELD(count, resolve_queue_reject), RANGE(0, BULKHEAD_MAX), .limits = places },
	{ "resolve-cache", "off", "how long the answer of a lookup is given again",
		FIELD(ns, resolve_cache_ns), RANGE(MS_NS, DAY_NS), .limits = off_or_until_a_day,
		.can_be_off = true },
	{ "resolve-stale", "off", "how old an answer may be that stands in for a failed lookup",
		FIELD(ns, resolve_stale_ns), RANGE(MS_NS, DAY_NS), .limits = off_or_until_a_day,
		.can_be_off = true },
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
		"hystrix: what Hystrix sets, timeout=1s and concurrency=10 included, where nothing "
		"else is given",
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
		{ "neutral", "reopen" }, { "rejects", "count" }, { "timeout", "1s" },
		{ "concurrency", "10" },
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
