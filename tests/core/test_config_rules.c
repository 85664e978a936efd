/* SPDX-License-Identifier: MIT */
/* Rules as they are added one by one; what is read from an environment or a file is test_config.c's
 * matter. */
#include "core/config_rules.h"

#include <criterion/criterion.h>
#include <string.h>

static struct config config;

TestSuite(config_rules);

static struct config_source source(const char *name, const char *text, bool is_from_file)
{
	return (struct config_source){ "HERE", span_of(name), span_of(text), is_from_file };
}

static void add(const char *name, const char *text)
{
	struct config_source added = source(name, text, false);

	config_add_rule(&config, &added);
}

static void add_fault(const char *name, const char *text)
{
	struct config_source added = source(name, text, false);

	config_add_fault(&config, &added);
}

static const char *applies_to(const char *host)
{
	const struct rule *rule = config_match(&config, &(struct endpoint){ .host = host,
		.is_lookup = true });

	return rule ? rule->name : "none";
}

Test(config_rules, the_most_specific_applies_whatever_came_first)
{
	add("ALL", "any");
	add("PAY", "pay.internal");
	add("INTERNAL", ".internal");
	add("OUT", "^shop.internal");
	cr_expect_eq(config.problem_count, 0);
	cr_expect_str_eq(applies_to("pay.internal"), "PAY");
	cr_expect_str_eq(applies_to("db.internal"), "INTERNAL");
	cr_expect_str_eq(applies_to("example.com"), "ALL");
	cr_expect_str_eq(applies_to("shop.internal"), "none");
	cr_expect(config.wants_names);
}

Test(config_rules, all_faults_apply_that_match)
{
	struct endpoint pay = { .host = "pay", .is_lookup = true };

	add_fault("A", "dns:pay nxdomain");
	add_fault("B", "dns:shop nxdomain");
	add_fault("C", "dns:pay latency=1s");
	cr_assert_eq(config.problem_count, 0, "%s", config.problems[0].text);
	cr_expect_eq(__builtin_popcount(config_match_faults(&config, &pay, FAULT_TCP)), 2);
	cr_expect_eq(config_match(&config, &pay), NULL);
}

Test(config_rules, what_is_wrong_with_one_is_said_and_it_is_left_out)
{
	add("BAD", "pay volume=none");
	add("bad name", "pay");
	cr_expect_eq(config.rule_count, 0);
	cr_assert_eq(config.problem_count, 2);
	cr_expect_str_eq(config.problems[0].name, "BAD");
	cr_expect(strncmp(config.problems[0].text, "HERE: volume", 12) == 0, "%s",
			config.problems[0].text);
	cr_expect_str_empty(config.problems[1].name);
}

Test(config_rules, a_name_is_had_once_but_by_a_breaker_and_a_fault)
{
	struct config_source late = source("PAY", "shop", true);

	add("PAY", "pay");
	add_fault("PAY", "pay refuse");
	cr_expect_eq(config.problem_count, 0);
	config_add_rule(&config, &late);
	cr_expect_eq(config.problem_count, 0, "the environment's stands without a word");
	add("PAY", "shop");
	cr_expect_eq(config.problem_count, 1);
	cr_expect_eq(config.rule_count, 1);
	cr_expect_eq(config.fault_count, 1);
}

Test(config_rules, problems_beyond_the_list_are_counted)
{
	for (int i = 0; i < CONFIG_MAX_PROBLEMS + 3; i++)
		config_add_expected(&config, "HERE", "nothing", span_of("this"));
	cr_expect_eq(config.problem_count, CONFIG_MAX_PROBLEMS + 3);
	cr_expect_str_eq(config.problems[0].text, "HERE: expected nothing, got 'this'");
}
