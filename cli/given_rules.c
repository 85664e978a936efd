/* SPDX-License-Identifier: MIT */
#include "cli/given_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/environment.h"
#include "cli/terminal.h"
#include "core/target.h"
#include "core/text.h"

#define RULE_SEPARATORS " ,\t\r\n"

static const struct {
	const char *variable;
	const char *option;
} kinds[] = {
	[GIVEN_BREAK] = { "SHUNT_BREAK", "--break" },
	[GIVEN_FAULT] = { "SHUNT_FAULT", "--fault" },
};

bool given_rules_add(struct given_rules *given, enum given_kind kind, const char *text)
{
	if (given->count == CONFIG_MAX_RULES) {
		terminal_complain("run: expected at most %d rules, got more; use a file and "
				  "SHUNT_CONF", CONFIG_MAX_RULES);
		return false;
	}
	given->rules[given->count++] = (struct given_rule){ .kind = kind, .text = text };
	return true;
}

static bool rule_target(const char *rule, struct target *ret)
{
	char text[HOST_SIZE];
	size_t length;

	rule += strspn(rule, RULE_SEPARATORS);
	length = strcspn(rule, RULE_SEPARATORS);
	if (length >= sizeof(text))
		return false;
	memcpy(text, rule, length);
	text[length] = '\0';
	return !target_parse(text, ret);
}

static bool targets_are_equal(const struct target *a, const struct target *b)
{
	return a->kind == b->kind && a->is_address == b->is_address &&
			a->prefix_bits == b->prefix_bits && a->port_low == b->port_low &&
			a->port_high == b->port_high && strcmp(a->host, b->host) == 0 &&
			memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

/* The rule of environment or file that an option of the same target must beat, or NULL. */
static const struct rule *find_beaten(const struct config *config, const struct given_rule *rule)
{
	struct target target;

	if (rule->kind != GIVEN_BREAK || !rule_target(rule->text, &target))
		return NULL;
	for (size_t i = 0; i < config->rule_count; i++) {
		if (targets_are_equal(&config->rules[i].target, &target))
			return &config->rules[i];
	}
	return NULL;
}

/* The variable of the rule that this one beats, or the next free one. */
static void name_variable(const struct config *config, struct given_rule *rule)
{
	const struct rule *beaten = find_beaten(config, rule);
	const char *variable = kinds[rule->kind].variable;
	unsigned int number = 1;

	if (beaten && strcmp(beaten->name, "default") == 0) {
		text_copy(rule->variable, sizeof(rule->variable), variable);
		return;
	}
	if (beaten) {
		snprintf(rule->variable, sizeof(rule->variable), "%s_%s", variable, beaten->name);
		return;
	}
	do {
		snprintf(rule->variable, sizeof(rule->variable), "%s_RUN%u", variable, number++);
	} while (getenv(rule->variable));
}

void given_rules_set(struct given_rules *given, struct config *config)
{
	config_load(config, environ, NULL);
	for (size_t i = 0; i < given->count; i++) {
		struct given_rule *rule = &given->rules[i];

		name_variable(config, rule);
		environment_set_own(rule->variable, rule->text);
	}
	config_load(config, environ, NULL);
}

/* The option that a problem is about, which its user never named SHUNT_BREAK_RUN1. */
static const struct given_rule *problem_rule(const struct given_rules *given, const char *text,
		const char **ret_rest)
{
	for (size_t i = 0; i < given->count; i++) {
		size_t length = strlen(given->rules[i].variable);

		if (strncmp(text, given->rules[i].variable, length) == 0 && text[length] == ':') {
			*ret_rest = text + length + 1;
			return &given->rules[i];
		}
	}
	return NULL;
}

void given_rules_complain(const struct given_rules *given, const struct config *config)
{
	for (size_t i = 0; i < config->problem_count && i < CONFIG_MAX_PROBLEMS; i++) {
		const char *text = config->problems[i].text;
		const char *rest;
		const struct given_rule *rule = problem_rule(given, text, &rest);

		if (rule)
			terminal_complain("run: %s '%s':%s", kinds[rule->kind].option, rule->text,
					rest);
		else
			terminal_complain("run: %s", text);
	}
	if (config->problem_count > CONFIG_MAX_PROBLEMS)
		terminal_complain("run: %zu more problems were not kept; mend these first",
				config->problem_count - CONFIG_MAX_PROBLEMS);
}
