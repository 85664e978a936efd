/* SPDX-License-Identifier: MIT */
#include "cli/rules.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

struct rules {
	struct known_rule *known;
	size_t count;
};

static struct known_rule *rules_entry(struct rules *rules, const char *name)
{
	struct known_rule *rule;

	for (size_t i = 0; i < rules->count; i++) {
		if (strcmp(rules->known[i].name, name) == 0)
			return &rules->known[i];
	}
	rule = &rules->known[rules->count++];
	*rule = (struct known_rule){ 0 };
	text_copy(rule->name, sizeof(rule->name), name);
	return rule;
}

static void add_records(struct rules *rules, const struct segment *segment)
{
	struct segment_rule_view record;

	for (uint32_t i = 0; i < SEGMENT_RULES; i++) {
		struct known_rule *rule;

		if (!segment_rule_read(segment, i, &record))
			continue;
		rule = rules_entry(rules, record.name);
		rule->matched = record.matched;
		text_copy(rule->error, sizeof(rule->error), record.error);
	}
}

static void add_own(struct rules *rules, const struct config *config)
{
	for (size_t i = 0; i < config->rule_count; i++)
		rules_entry(rules, config->rules[i].name)->error[0] = '\0';
	for (size_t i = 0; i < config->problem_count && i < CONFIG_MAX_PROBLEMS; i++) {
		const struct problem *problem = &config->problems[i];
		struct known_rule *rule;

		if (problem->name[0] == '\0')
			continue;
		rule = rules_entry(rules, problem->name);
		text_copy(rule->error, sizeof(rule->error), problem->text);
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct known_rule *first = a, *second = b;

	return strcmp(first->name, second->name);
}

size_t rules_gather(const struct state *state, struct known_rule *ret)
{
	struct rules rules = { .known = ret };

	if (state->segment)
		add_records(&rules, state->segment);
	add_own(&rules, &state->config);
	qsort(ret, rules.count, sizeof(*ret), compare_names);
	return rules.count;
}

bool rules_do_something(const struct config *config)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		if (!config->rules[i].target.is_excluded)
			return true;
	}
	for (size_t i = 0; i < config->fault_count; i++) {
		if (!config->faults[i].target.is_excluded)
			return true;
	}
	return false;
}
