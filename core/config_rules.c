/* SPDX-License-Identifier: MIT */
#include "core/config_rules.h"

#include "core/fault_text.h"
#include "core/rule_hint.h"
#include "core/rule_word.h"
#include "core/text.h"

static const char expect_name[] = "a name of letters, digits, _ and -, at most 63 of them";

void config_add_problem(
		struct config *config, const char *name, const char *where, const char *what)
{
	if (config->problem_count < CONFIG_MAX_PROBLEMS) {
		struct problem *problem = &config->problems[config->problem_count];

		text_copy(problem->name, sizeof(problem->name), name);
		text_format(problem->text, sizeof(problem->text), "%s: %s", where, what);
	}
	config->problem_count++;
}

void config_add_expected(struct config *config, const char *where, const char *expected,
		struct span got)
{
	char what[CONFIG_PROBLEM_SIZE];

	text_expected(what, sizeof(what), expected, got.text, got.length, NULL);
	config_add_problem(config, "", where, what);
}

/* Has it a good name, which no rule of that kind has yet? A rule of the file yields to one of the
 * environment without a word. */
static bool copy_name(struct config *config, const struct config_source *source, bool is_fault,
		char ret[RULE_NAME_SIZE])
{
	if (!rule_name_is_good(source->name.text, source->name.length)) {
		config_add_expected(config, source->where, expect_name, source->name);
		return false;
	}
	text_copy(ret, source->name.length + 1, source->name.text);
	const struct rule *rule = is_fault ? NULL : rule_find(config->rules, config->rule_count,
		ret);
	const struct fault *fault = is_fault ? fault_find(config->faults, config->fault_count,
		ret) : NULL;
	if (!rule && !fault)
		return true;
	if ((rule ? rule->is_from_file : fault->is_from_file) == source->is_from_file)
		config_add_expected(config, source->where, "a name no rule has", source->name);
	return false;
}

void config_add_rule(struct config *config, const struct config_source *source)
{
	char name[RULE_NAME_SIZE], error[CONFIG_PROBLEM_SIZE];

	if (!copy_name(config, source, false, name))
		return;
	if (config->rule_count == CONFIG_MAX_RULES) {
		config_add_problem(config, name, source->where,
				"left out, there are 128 rules already");
		return;
	}
	struct rule *rule = &config->rules[config->rule_count];
	if (!rule_parse(name, source->text.text, source->text.length, rule, error, sizeof(error))) {
		rule_hint(source->text.text, source->text.length, false, error, sizeof(error));
		config_add_problem(config, name, source->where, error);
		return;
	}
	rule->is_from_file = source->is_from_file;
	config->wants_names |= target_wants_names(&rule->target);
	config->has_fallback |= rule->settings.fallback.address.family != 0;
	rule_place(config->rules, config->rule_count++);
}

/* Its problems go by no name: a breaker rule may have the same. */
static void add_fault(struct config *config, const struct config_source *source)
{
	char name[RULE_NAME_SIZE], error[CONFIG_PROBLEM_SIZE];

	if (!copy_name(config, source, true, name))
		return;
	if (config->fault_count == CONFIG_MAX_FAULTS) {
		config_add_problem(config, "", source->where,
				"left out, there are 32 fault rules already");
		return;
	}
	struct fault *fault = &config->faults[config->fault_count];
	if (!fault_parse(name, source->text.text, source->text.length, fault, error,
		sizeof(error))) {
		rule_hint(source->text.text, source->text.length, true, error, sizeof(error));
		config_add_problem(config, "", source->where, error);
		return;
	}
	fault->is_from_file = source->is_from_file;
	config->wants_names |= target_wants_names(&fault->target);
	fault_place(config->faults, config->fault_count++);
}

static bool is_exclusion(struct span text)
{
	struct rule_words words = { text.text, text.text + text.length };
	struct rule_word target;

	return rule_word_next(&words, &target) && target.text[0] == '^';
}

void config_add_fault(struct config *config, const struct config_source *source)
{
	size_t before = config->problem_count;

	add_fault(config, source);
	/* What a bad exclusion was to keep out would be struck. */
	if (config->problem_count > before && is_exclusion(source->text))
		config->has_bad_bound = true;
}

const struct rule *config_match(const struct config *config, const struct endpoint *endpoint)
{
	for (size_t i = 0; i < config->rule_count; i++) {
		const struct rule *rule = &config->rules[i];

		if (target_matches(&rule->target, endpoint))
			return rule->target.is_excluded ? NULL : rule;
	}
	return NULL;
}

uint32_t config_match_faults(const struct config *config, const struct endpoint *endpoint,
		enum fault_protocol protocol)
{
	uint32_t matches = 0;

	/* Exclusions come first. */
	for (size_t i = 0; i < config->fault_count; i++) {
		if (!fault_matches(&config->faults[i], endpoint, protocol))
			continue;
		if (config->faults[i].target.is_excluded)
			return 0;
		matches |= 1u << i;
	}
	return matches;
}
