/* SPDX-License-Identifier: MIT */
#include "core/setting_table.h"
#include "core/settings.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char error[256];

static struct settings applied(const char *name, const char *value)
{
	struct settings settings = settings_default;

	cr_assert(settings_apply(&settings, name, value, error, sizeof(error)), "%s", error);
	return settings;
}

/* What the table tells people is what settings_default does. */
Test(settings, the_default_texts_are_the_defaults)
{
	size_t count;
	const struct setting *table = settings_table(&count);

	for (size_t i = 0; i < count; i++) {
		struct settings settings = settings_default;

		if (table[i].default_text[0] == '=' || table[i].is_list)
			continue;
		cr_assert(settings_apply(&settings, table[i].name, table[i].default_text, error,
				sizeof(error)), "%s", error);
		settings.given = 0;
		cr_expect_eq(memcmp(&settings, &settings_default, sizeof(settings)), 0, "%s",
				table[i].name);
	}
}

Test(settings, each_is_read_into_its_field)
{
	cr_expect_eq(applied("errors", "1/20").errors_ratio, 50000);
	cr_expect_eq(applied("errors", "0%").errors_ratio, 0);
	cr_expect_eq(applied("volume", "1").volume, 1);
	cr_expect_eq(applied("window", "500ms").window.span_ns, 500000000);
	cr_expect_eq(applied("window", "992calls").window.calls, 992);
	cr_expect_eq(applied("window", "1call").window.calls, 1);
	cr_expect_eq(applied("buckets", "64").window.buckets, 64);
	cr_expect_eq(applied("sleep", "24h").sleep_ms, 86400000);
	cr_expect_eq(applied("probes", "15").probes, 15);
	cr_expect_eq(applied("probes", "20%").probes_ratio, 200000);
	cr_expect_eq(applied("probes", "1/5").probes_ratio, 200000);
	cr_expect_eq(applied("half-open", "rate").half_open, HALF_OPEN_RATE);
	cr_expect_eq(applied("lease", "1s").lease_ms, 1000);
	cr_expect_eq(applied("consecutive", "5").consecutive, 5);
	cr_expect_eq(applied("slow", "800ms").slow_ns, 800000000);
	cr_expect_eq(applied("slow-rate", "60%").slow_ratio, 600000);
	cr_expect_eq(applied("backoff", "1.5..60s").backoff_factor_thousandths, 1500);
	cr_expect_eq(applied("backoff", "2..60s").backoff_max_ms, 60000);
	cr_expect_eq(applied("neutral", "release").neutral, NEUTRAL_RELEASE);
	cr_expect_eq(applied("rejects", "ignore").rejects_count, false);
	cr_expect_eq(applied("rejects", "count").rejects_count, true);
	cr_expect_eq(applied("force", "open").force, FORCE_OPEN);
	cr_expect_eq(applied("force", "closed").force, FORCE_CLOSED);
	cr_expect_eq(applied("enabled", "no").enabled, false);
	cr_expect_eq(applied("abandon", "2s").abandon_ns, 2000000000);
	cr_expect_eq(applied("guard", "connect").guard, GUARD_CONNECT);
	cr_expect_eq(applied("per", "host").per, PER_HOST);
	cr_expect_eq(applied("per", "rule").per, PER_RULE);
	cr_expect_eq(applied("error", "ETIMEDOUT").refuse_errno, ETIMEDOUT);
}

Test(settings, milliseconds_are_rounded_up_and_never_to_nothing)
{
	cr_expect_eq(applied("sleep", "1ns").sleep_ms, 1);
	cr_expect_eq(applied("sleep", "1000001ns").sleep_ms, 2);
	cr_expect_eq(applied("lease", "1500us").lease_ms, 2);
	cr_expect_eq(applied("backoff", "2..1ns").backoff_max_ms, 1);
}

Test(settings, a_later_window_replaces_an_earlier_one)
{
	struct settings settings = applied("window", "100calls");

	cr_expect(settings_apply(&settings, "window", "5s", error, sizeof(error)));
	cr_expect_eq(settings.window.calls, 0);
	cr_expect_eq(settings.window.span_ns, 5000000000);
	cr_expect(settings_apply(&settings, "probes", "20%", error, sizeof(error)));
	cr_expect(settings_apply(&settings, "probes", "3", error, sizeof(error)));
	cr_expect_eq(settings.probes, 3);
	cr_expect_eq(settings.probes_ratio, 0);
}

Test(settings, off_takes_back_what_can_be_off)
{
	struct settings settings = applied("backoff", "2..60s");

	cr_expect(settings_apply(&settings, "backoff", "off", error, sizeof(error)));
	cr_expect_eq(settings.backoff_factor_thousandths, 0);
	cr_expect_eq(applied("slow", "off").slow_ns, 0);
	cr_expect_eq(applied("consecutive", "off").consecutive, 0);
}

Test(settings, lists_take_three_separators_and_grow)
{
	struct settings settings = applied("ignore", "ECONNRESET,EPIPE+ETIMEDOUT|EAI_AGAIN");

	cr_expect(error_set_has_errno(&settings.ignore, ECONNRESET));
	cr_expect(error_set_has_errno(&settings.ignore, EPIPE));
	cr_expect(error_set_has_errno(&settings.ignore, ETIMEDOUT));
	cr_expect(error_set_has_eai(&settings.ignore, EAI_AGAIN));
	cr_expect(settings_apply(&settings, "ignore", "EPROTO", error, sizeof(error)));
	cr_expect(error_set_has_errno(&settings.ignore, ECONNRESET));
	cr_expect(error_set_has_errno(&settings.ignore, EPROTO));
	cr_expect_not(error_set_has_errno(&settings.fail, EPROTO));
	settings = applied("fail", "EAI_NONAME");
	cr_expect(error_set_has_eai(&settings.fail, EAI_NONAME));
}

static const struct bad {
	const char *name, *value, *error;
} bad[] = {
		{"errors", "50", "errors: expected a ratio such as 50% or 1/20, got '50'"},
		{"errors", "0.5", "errors: expected a ratio such as 50% or 1/20, got '0.5'"},
		{"errors", "101%",
				"errors: expected 0%, or a ratio from 0.0001% to 100%, got '101%'"},
		{"errors", "", "errors: expected a ratio such as 50% or 1/20, got ''"},
		{"volume", "0", "volume: expected a whole number from 1 to 1000000, got '0'"},
		{"volume", "1000001",
				"volume: expected a whole number from 1 to 1000000, got '1000001'"},
		{"volume", "20s", "volume: expected a whole number from 1 to 1000000, got '20s'"},
		{"volume", "99999999999999999999",
				"volume: expected a whole number from 1 to 1000000, got "
				"'99999999999999999999'"},
		{"volume", "off", "volume: expected a whole number from 1 to 1000000, got 'off'"},
		{"window", "10",
				"window: expected a duration such as 10s, or a number of calls "
				"such as 100calls, got '10'"},
		{"window", "100",
				"window: expected a duration such as 10s, or a number of calls "
				"such as 100calls, got '100'"},
		{"window", "0s", "window: expected a duration from 1ms to 24h, got '0s'"},
		{"window", "25h", "window: expected a duration from 1ms to 24h, got '25h'"},
		{"window", "0calls",
				"window: expected a window from 1calls to 992calls, got '0calls'"},
		{"window", "993calls",
				"window: expected a window from 1calls to 992calls, got "
				"'993calls'"},
		{"window", "calls",
				"window: expected a window from 1calls to 992calls, got 'calls'"},
		{"window", "1.5calls",
				"window: expected a window from 1calls to 992calls, got "
				"'1.5calls'"},
		{"window", "12345678901calls",
				"window: expected a window from 1calls to 992calls, got "
				"'12345678901calls'"},
		{"buckets", "0", "buckets: expected a whole number from 1 to 64, got '0'"},
		{"buckets", "65", "buckets: expected a whole number from 1 to 64, got '65'"},
		{"sleep", "5", "sleep: expected a duration such as 250ms, 5s or 1m, got '5'"},
		{"sleep", "0ms", "sleep: expected a duration from 1ms to 24h, got '0ms'"},
		{"sleep", "86400001ms",
				"sleep: expected a duration from 1ms to 24h, got '86400001ms'"},
		{"sleep", "24.000001h",
				"sleep: expected a duration from 1ms to 24h, got '24.000001h'"},
		{"sleep", "9999999999999999999999s",
				"sleep: expected a duration from 1ms to 24h, got "
				"'9999999999999999999999s'"},
		{"probes", "0",
				"probes: expected a whole number from 1 to 15, or a ratio such as "
				"20%, got '0'"},
		{"probes", "16",
				"probes: expected a whole number from 1 to 15, or a ratio such as "
				"20%, got '16'"},
		{"probes", "0%",
				"probes: expected a whole number from 1 to 15, or a ratio such as "
				"20%, got '0%'"},
		{"probes", "0.2",
				"probes: expected a whole number from 1 to 15, or a ratio such as "
				"20%, got '0.2'"},
		{"half-open", "rat",
				"half-open: expected any or rate, got 'rat', did you mean rate?"},
		{"half-open", "RATE",
				"half-open: expected any or rate, got 'RATE', did you mean rate?"},
		{"half-open", "1", "half-open: expected any or rate, got '1'"},
		{"lease", "off", "lease: expected a duration such as 250ms, 5s or 1m, got 'off'"},
		{"lease", "0s", "lease: expected a duration from 1ms to 24h, got '0s'"},
		{"consecutive", "0",
				"consecutive: expected a whole number from 1 to 1000000, or off, "
				"got '0'"},
		{"slow", "1", "slow: expected a duration such as 250ms, 5s or 1m, or off, got '1'"},
		{"slow", "0ms", "slow: expected a duration from 1ns to 24h, or off, got '0ms'"},
		{"slow-rate", "0%", "slow-rate: expected a ratio above 0%, at most 100%, got '0%'"},
		{"slow-rate", "1", "slow-rate: expected a ratio such as 50% or 1/20, got '1'"},
#define BACKOFF(value)                                                                             \
	{                                                                                          \
		"backoff", value,                                                                  \
				"backoff: expected a factor from 1 to 100 and a duration, "        \
				"such as 2..60s, or off, got '" value "'"                          \
	}
		BACKOFF("2"),
		BACKOFF("60s"),
		BACKOFF("..60s"),
		BACKOFF("2.."),
		BACKOFF("2..60"),
		BACKOFF("0.9..60s"),
		BACKOFF("100.1..60s"),
		BACKOFF("2..25h"),
		BACKOFF("2..0s"),
		BACKOFF("2...60s"),
		BACKOFF("2..60s..3"),
		BACKOFF("-2..60s"),
		BACKOFF(""),
		BACKOFF("2.0000000000000000000..60s"),
		BACKOFF("2..99999999999999999999s"),
#undef BACKOFF
		{"neutral", "open", "neutral: expected reopen or release, got 'open'"},
		{"neutral", "realease",
				"neutral: expected reopen or release, got 'realease', did you mean "
				"release?"},
		{"rejects", "yes", "rejects: expected count or ignore, got 'yes'"},
		{"force", "close",
				"force: expected none, open or closed, got 'close', did you mean "
				"closed?"},
		{"force", "opn",
				"force: expected none, open or closed, got 'opn', did you mean "
				"open?"},
		{"enabled", "true", "enabled: expected yes or no, got 'true'"},
		{"abandon", "1", "abandon: expected a duration such as 250ms, 5s or 1m, got '1'"},
		{"abandon", "0s", "abandon: expected a duration from 1ms to 24h, got '0s'"},
		{"guard", "conect",
				"guard: expected exchange or connect, got 'conect', did you mean "
				"connect?"},
		{"per", "port", "per: expected address, host or rule, got 'port'"},
		{"error", "EINPROGRESS",
				"error: expected an error of connect such as ECONNREFUSED, "
				"ETIMEDOUT "
				"or EHOSTUNREACH, got 'EINPROGRESS'"},
		{"error", "EPIPE",
				"error: expected an error of connect such as ECONNREFUSED, "
				"ETIMEDOUT or "
				"EHOSTUNREACH, got 'EPIPE'"},
		{"error", "ECONREFUSED",
				"error: expected an error of connect such as ECONNREFUSED, "
				"ETIMEDOUT "
				"or EHOSTUNREACH, got 'ECONREFUSED', did you mean ECONNREFUSED?"},
		{"ignore", "",
				"ignore: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got ''"},
		{"ignore", "104",
				"ignore: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got '104'"},
		{"ignore", "EPIPE,ECONRESET",
				"ignore: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got 'ECONRESET', did you mean ECONNRESET?"},
		{"fail", "EPIPE,,EPROTO",
				"fail: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got ''"},
		{"fail", "EPIPE+",
				"fail: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got ''"},
		{"fail", "EINTR",
				"fail: expected names of errors such as ECONNRESET or EAI_AGAIN, "
				"got 'EINTR'"},
		{"preset", "histrix",
				"preset: expected none or hystrix, got 'histrix', did you mean "
				"hystrix?"},
		{"sleeep", "5s",
				"setting: expected a known one, got 'sleeep', did you mean sleep?"},
		{"half_open", "any",
				"setting: expected a known one, got 'half_open', did you mean "
				"half-open?"},
		{"Volume", "5",
				"setting: expected a known one, got 'Volume', did you mean "
				"volume?"},
		{"elephants", "5", "setting: expected a known one, got 'elephants'"},
		{"", "5", "setting: expected a known one, got ''"},
		{"a\x01", "5", "setting: expected a known one, got 'a\\x01'"},
		{"timeout", "1",
				"timeout: expected a duration such as 250ms, 5s or 1m, or off, got "
				"'1'"},
		{"timeout", "0s", "timeout: expected off, or a duration from 1ms to 24h, got '0s'"},
		{"concurrency", "0",
				"concurrency: expected off, or a whole number from 1 to 1024, "
				"got '0'"},
		{"queue", "1025", "queue: expected a whole number from 0 to 1024, got '1025'"},
		{"fallback", "backup:80",
				"fallback: expected an address and port such as "
				"127.0.0.1:8080 or [::1]:8080, or none, got 'backup:80'"},
		{"resolve-pool", "65",
				"resolve-pool: expected a whole number from 1 to 64, "
				"got '65'"},
		{"timeuot", "1s",
				"setting: expected a known one, got 'timeuot', did you mean "
				"timeout?"},
};

Test(settings, a_bad_value_changes_nothing_and_says_what_was_expected)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct settings settings = settings_default;

		cr_assert_not(settings_apply(&settings, bad[i].name, bad[i].value, error,
					      sizeof(error)),
				"%s=%s", bad[i].name, bad[i].value);
		cr_expect_str_eq(error, bad[i].error, "%s", error);
		cr_expect_eq(memcmp(&settings, &settings_default, sizeof(settings)), 0, "%s=%s",
				bad[i].name, bad[i].value);
	}
}

Test(settings, a_message_fits_whatever_was_written)
{
	char value[5000], small[16];
	struct settings settings = settings_default;

	memset(value, '\xff', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	cr_expect_not(settings_apply(&settings, "ignore", value, error, sizeof(error)));
	cr_expect_str_eq(error,
			"ignore: expected names of errors such as ECONNRESET or EAI_AGAIN, got '"
			"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xf"
			"f...'");
	cr_expect_not(settings_apply(&settings, value, value, error, sizeof(error)));
	cr_expect_not(settings_apply(&settings, "sleep", value, small, sizeof(small)));
	cr_expect_str_eq(small, "sleep: expected");
}

static bool finished(struct settings *settings, const char *const pairs[][2], size_t count)
{
	*settings = settings_default;
	error[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		cr_assert(settings_apply(settings, pairs[i][0], pairs[i][1], error, sizeof(error)),
				"%s", error);
	}
	return settings_finish(settings, error, sizeof(error));
}

#define FINISHED(settings, ...) \
	finished(settings, (const char *const[][2]){ __VA_ARGS__ }, \
			sizeof((const char *const[][2]){ __VA_ARGS__ }) / sizeof(char *[2]))

Test(settings, an_unset_pool_maximum_is_the_pool)
{
	struct settings settings = settings_default;

	settings_apply(&settings, "resolve-pool", "3", error, sizeof(error));
	cr_expect(settings_finish(&settings, error, sizeof(error)));
	cr_expect_eq(settings.resolve_pool_max, 3);
	settings_apply(&settings, "resolve-pool-max", "2", error, sizeof(error));
	cr_expect_not(settings_finish(&settings, error, sizeof(error)));
	cr_expect_str_eq(error,
			"resolve-pool-max: expected at least the resolve-pool of 3, got '2'");
}

Test(settings, an_unset_lease_is_the_sleep_window)
{
	struct settings settings;

	cr_expect(FINISHED(&settings, { "sleep", "300ms" }));
	cr_expect_eq(settings.lease_ms, 300);
	cr_expect(FINISHED(&settings, { "lease", "7s" }, { "sleep", "300ms" }));
	cr_expect_eq(settings.lease_ms, 7000);
}

Test(settings, a_window_of_calls_bounds_the_volume_and_has_no_buckets)
{
	struct settings settings;

	cr_expect(FINISHED(&settings, { "window", "10calls" }));
	cr_expect_eq(settings.volume, 10);
	cr_expect(settings.window.span_ns == 0 && settings.window.buckets == 0);
	cr_expect(FINISHED(&settings, { "window", "100calls" }));
	cr_expect_eq(settings.volume, 20);
	cr_expect(FINISHED(&settings, { "window", "10calls" }, { "preset", "hystrix" }));
	cr_expect_eq(settings.volume, 10);
	cr_expect_not(FINISHED(&settings, { "volume", "11" }, { "window", "10calls" }));
	cr_expect_str_eq(error, "volume: expected at most the 10 calls of the window, got '11'");
	cr_expect_not(FINISHED(&settings, { "buckets", "10" }, { "window", "10calls" }));
	cr_expect_str_eq(error, "buckets: a window of calls has none");
	cr_expect(FINISHED(&settings, {"window", "10calls"}, {"window", "10s"}, {"buckets", "5"}));
	cr_expect_eq(settings.window.buckets, 5);
}

Test(settings, what_contradicts_is_refused)
{
	struct settings settings;

	cr_expect_not(FINISHED(&settings, { "ignore", "EPIPE,EPROTO" }, { "fail", "EPROTO" }));
	cr_expect_str_eq(error, "fail: EPROTO is in ignore too");
	cr_expect_not(FINISHED(&settings, { "fail", "EAI_NONAME" }, { "ignore", "EAI_NONAME" }));
	cr_expect_str_eq(error, "fail: EAI_NONAME is in ignore too");
	cr_expect_not(FINISHED(&settings, { "backoff", "2..4s" }));
	cr_expect_str_eq(error, "backoff: expected a limit of at least the sleep of 5000ms");
	cr_expect(FINISHED(&settings, { "backoff", "2..5s" }));
	cr_expect_not(FINISHED(&settings, { "half-open", "rate" }, { "probes", "20%" }));
	cr_expect_str_eq(error, "half-open: rate needs a number of probes, not a share of calls");
}

Test(settings, a_preset_yields_to_what_is_given_in_any_order)
{
	struct settings before, after;

	cr_expect(FINISHED(&before, { "preset", "hystrix" }, { "volume", "5" }, { "probes", "3" }));
	cr_expect(FINISHED(&after, { "volume", "5" }, { "probes", "3" }, { "preset", "hystrix" }));
	cr_expect_eq(memcmp(&before, &after, sizeof(before)), 0);
	cr_expect_eq(after.volume, 5);
	cr_expect_eq(after.probes, 3);
	cr_expect_eq(after.errors_ratio, RATIO_ONE / 2);
}
