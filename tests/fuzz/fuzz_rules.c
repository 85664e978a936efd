/* SPDX-License-Identifier: MIT */
/* What users type: the input is read as a file of rules, and line by line as an environment. */
#include <string.h>

#include "core/config.h"
#include "tests/fuzz/fuzz.h"

#define ENTRIES_MAX 512

static struct config config;

static void check_problems(void)
{
	for (size_t i = 0; i < config.problem_count && i < CONFIG_MAX_PROBLEMS; i++) {
		const struct problem *problem = &config.problems[i];
		size_t length = strnlen(problem->text, sizeof(problem->text));

		FUZZ_EXPECT(length > 0 && length < sizeof(problem->text));
		FUZZ_EXPECT(strnlen(problem->name, sizeof(problem->name)) < sizeof(problem->name));
		for (size_t j = 0; j < length; j++)
			FUZZ_EXPECT(problem->text[j] >= 0x20 && problem->text[j] < 0x7f);
	}
}

static void check_settings(const struct settings *settings)
{
	const struct window_shape *window = &settings->window;

	FUZZ_EXPECT(settings->errors_ratio <= RATIO_ONE && settings->slow_ratio <= RATIO_ONE);
	FUZZ_EXPECT(settings->slow_ratio > 0 && settings->volume > 0);
	FUZZ_EXPECT(settings->sleep_ms >= 1 && settings->sleep_ms <= SETTINGS_MAX_MS);
	FUZZ_EXPECT(settings->lease_ms >= 1 && settings->lease_ms <= SETTINGS_MAX_MS);
	FUZZ_EXPECT(settings->backoff_max_ms <= SETTINGS_MAX_MS);
	FUZZ_EXPECT(settings->probes >= 1 && settings->probes <= 15);
	FUZZ_EXPECT(settings->abandon_ns > 0 && settings->refuse_errno > 0);
	if (window->calls)
		FUZZ_EXPECT(window->calls <= WINDOW_MAX_CALLS && settings->volume <= window->calls);
	else
		FUZZ_EXPECT(window->span_ns >= 1000000 && window->buckets >= 1 &&
				window->buckets <= WINDOW_MAX_BUCKETS);
	FUZZ_EXPECT(!error_set_common(&settings->ignore, &settings->fail));
}

/* What a rule shows of its target reads back as that target, unless it was shortened. */
static void check_target(const struct target *target)
{
	struct target again;

	if (strchr(target->text, '\\') || strstr(target->text, "...") ||
			strncmp(target->text + target->is_excluded, "dns:", 4) == 0)
		return;
	FUZZ_EXPECT(!target_parse(target->text, &again));
	FUZZ_EXPECT(target_compare(target, &again) == 0 && strcmp(target->host, again.host) == 0);
	FUZZ_EXPECT(address_equals(&target->address, &again.address));
}

static void check_rules(void)
{
	FUZZ_EXPECT(config.rule_count <= CONFIG_MAX_RULES);
	for (size_t i = 0; i < config.rule_count; i++) {
		const struct rule *rule = &config.rules[i];

		FUZZ_EXPECT(rule_name_is_good(rule->name, strnlen(rule->name, RULE_NAME_SIZE)));
		FUZZ_EXPECT(i == 0 || rule_compare(&config.rules[i - 1], rule) < 0);
		check_settings(&rule->settings);
		check_target(&rule->target);
	}
}

static void check_faults(void)
{
	FUZZ_EXPECT(config.fault_count <= CONFIG_MAX_FAULTS);
	for (size_t i = 0; i < config.fault_count; i++) {
		const struct fault *fault = &config.faults[i];

		FUZZ_EXPECT(rule_name_is_good(fault->name, strnlen(fault->name, RULE_NAME_SIZE)));
		FUZZ_EXPECT(i == 0 || fault_compare(&config.faults[i - 1], fault) < 0);
		check_target(&fault->target);
	}
}

static void check_match(const char *host, const char *address_text, uint16_t port)
{
	struct address address = { .family = 0 };
	struct endpoint endpoint = { host, &address, port, !address_text };

	if (address_text)
		FUZZ_EXPECT(address_parse(address_text, &address));
	const struct rule *rule = config_match(&config, &endpoint);
	FUZZ_EXPECT(!rule || (rule >= config.rules && rule < config.rules + config.rule_count));
	FUZZ_EXPECT(!rule || !rule->target.is_excluded);
	uint32_t matches = config_match_faults(&config, &endpoint, FAULT_TCP);
	for (size_t i = 0; i < CONFIG_MAX_FAULTS; i++)
		FUZZ_EXPECT(!(matches >> i & 1) || (i < config.fault_count &&
			!config.faults[i].target.is_excluded));
}

static void check(void)
{
	check_problems();
	check_rules();
	check_faults();
	check_match("pay.internal", "10.1.2.3", 443);
	check_match(NULL, "2001:db8::1", 80);
	check_match("web-1.example.com", NULL, 0);
}

/* Not SHUNT_CONF: the input must decide alone, not what files there are. */
static void load_as_environment(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *entries[ENTRIES_MAX + 1];
	size_t count = 0;

	FUZZ_EXPECT(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *at = text; count < ENTRIES_MAX;) {
		char *end = strchr(at, '\n');

		if (end)
			*end = '\0';
		if (strncmp(at, "SHUNT_CONF=", 11) != 0)
			entries[count++] = at;
		if (!end)
			break;
		at = end + 1;
	}
	entries[count] = NULL;
	config_load(&config, entries, &(struct config_process){ "curl", 1000 });
	check();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	config_load(&config, NULL, NULL);
	config_load_text(&config, "FILE", (const char *)data, size);
	check();
	load_as_environment(data, size);
	return 0;
}
