/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/rule_hint.h"

#define BREAKERS " is of breaker rules (--break, SHUNT_BREAK_NAME)"
#define FAULTS	 " is of fault rules (--fault, SHUNT_FAULT_NAME)"

static const struct {
	const char *rule;
	bool is_fault;
	const char *said;
} cases[] = {
	{ "redis refuse", false, "no; refuse" FAULTS },
	{ "redis,sleep=2s,latency=1s~2s", false, "no; latency" FAULTS },
	{ "dns:redis", false, "no; dns:" FAULTS },
	{ "^dns:redis nxdomain", false, "no; dns:" FAULTS },
	{ "redis sleep=2", false, "no" },
	{ "refuse", false, "no" },
	{ "redis timeout=1s per=call", false, "no" },
	{ "redis errors=50%", true, "no; errors" BREAKERS },
	{ "dns:redis sleep", true, "no; sleep" BREAKERS },
	{ "redis timeout=1", true, "no" },
	{ "errors refuse=1", true, "no" },
	{ "", true, "no" },
};

Test(rule_hint, a_word_of_the_other_kind_is_told_where_it_belongs)
{
	char error[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		strcpy(error, "no");
		rule_hint(cases[i].rule, strlen(cases[i].rule), cases[i].is_fault, error,
				sizeof(error));
		cr_expect_str_eq(error, cases[i].said, "%s: %s", cases[i].rule, error);
	}
}

Test(rule_hint, keeps_to_its_buffer)
{
	char error[16] = "no room at ##";

	rule_hint("redis refuse", 12, false, error, 14);
	cr_expect_str_eq(error, "no room at ##");
}
