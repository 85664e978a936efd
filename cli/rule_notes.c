/* SPDX-License-Identifier: MIT */
#include "cli/rule_notes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/setting_table.h"

static bool has_limit(const struct settings *settings)
{
	return settings->concurrency || settings->connections;
}

static bool has_queue(const struct settings *settings)
{
	return settings->queue != 0;
}

static bool has_fallback(const struct settings *settings)
{
	return settings->fallback.address.family != 0;
}

static bool has_resolve_timeout(const struct settings *settings)
{
	return settings->resolve_timeout_ns != 0;
}

static bool has_slow(const struct settings *settings)
{
	return settings->slow_ns != 0;
}

static const struct {
	const char *name;
	bool (*has_needed)(const struct settings *settings);
	const char *needed;
} needs[] = {
	{ "queue", has_limit, "concurrency or connections" },
	{ "queue-wait", has_queue, "queue" },
	{ "fallback-concurrency", has_fallback, "fallback" },
	{ "resolve-pool", has_resolve_timeout, "resolve-timeout" },
	{ "resolve-pool-max", has_resolve_timeout, "resolve-timeout" },
	{ "resolve-queue", has_resolve_timeout, "resolve-timeout" },
	{ "resolve-queue-reject", has_resolve_timeout, "resolve-timeout" },
	{ "slow-rate", has_slow, "slow" },
};

static bool is_given(const struct rule *rule, const char *name)
{
	return setting_is_given(&rule->settings, setting_find(name));
}

void rule_notes_print(const struct rule *rule)
{
	size_t count;
	const struct setting *settings = settings_table(&count);
	bool has_lookups = !rule->target.is_address;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (is_given(rule, needs[i].name) && !needs[i].has_needed(&rule->settings))
			printf("%s: note: %s does nothing without %s\n", rule->name, needs[i].name,
					needs[i].needed);
	}
	for (size_t i = 0; i < count && !has_lookups; i++) {
		if (strncmp(settings[i].name, "resolve-", 8) == 0 &&
				setting_is_given(&rule->settings, &settings[i]))
			printf("%s: note: %s does nothing for %s, as lookups go by names\n",
					rule->name, settings[i].name, rule->target.text);
	}
}
