/* SPDX-License-Identifier: MIT */
#include "core/setting_table.h"

#include <criterion/criterion.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(setting_table, the_table_has_every_setting_of_this_version_in_order)
{
	static const char *const names[] = {"errors", "volume", "window", "buckets", "sleep",
			"probes", "half-open", "lease", "consecutive", "slow", "slow-rate",
			"backoff", "neutral", "rejects", "force", "enabled", "abandon", "timeout",
			"concurrency", "queue", "queue-wait", "connections", "fallback",
			"fallback-concurrency", "resolve-timeout", "resolve-pool",
			"resolve-pool-max", "resolve-queue", "resolve-queue-reject",
			"resolve-cache", "resolve-stale", "guard", "per", "error", "ignore", "fail",
			"preset"};
	size_t count;
	const struct setting *table = settings_table(&count);

	cr_assert_eq(count, COUNT(names));
	cr_assert(count <= SETTINGS_MAX);
	for (size_t i = 0; i < count; i++) {
		cr_expect_str_eq(table[i].name, names[i]);
		cr_expect(table[i].default_text[0] && table[i].meaning[0], "%s", names[i]);
		cr_expect_eq(setting_find(names[i]), &table[i]);
	}
	cr_expect_null(setting_find("timeouts"));
}

Test(setting_table, a_reader_leaves_the_settings_alone_where_it_fails)
{
	size_t count;
	const struct setting *table = settings_table(&count);

	for (size_t i = 0; i < count; i++) {
		struct settings settings = settings_default;

		cr_expect_not_null(table[i].read(&table[i], &settings, "no such thing"), "%s",
				table[i].name);
		cr_expect_eq(memcmp(&settings, &settings_default, sizeof(settings)), 0, "%s",
				table[i].name);
	}
}

Test(setting_table, what_is_given_is_known)
{
	struct settings settings = settings_default;

	cr_expect_not(setting_is_given(&settings, setting_find("sleep")));
	setting_give(&settings, setting_find("sleep"));
	cr_expect(setting_is_given(&settings, setting_find("sleep")));
	cr_expect_not(setting_is_given(&settings, setting_find("lease")));
}
