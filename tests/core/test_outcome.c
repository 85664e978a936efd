/* SPDX-License-Identifier: MIT */
#include "core/outcome.h"

#include <criterion/criterion.h>

Test(outcome, every_name_leads_back_to_its_outcome)
{
	for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++)
		cr_assert_eq((int)outcome_from_name(outcome_name((enum outcome)i)), i);
}

Test(outcome, names_are_spelt_as_in_the_traces)
{
	cr_assert_str_eq(outcome_name(OUTCOME_SUCCESS), "success");
	cr_assert_str_eq(outcome_name(OUTCOME_TIMEOUT), "timeout");
	cr_assert_str_eq(outcome_name(OUTCOME_SHORT_CIRCUITED), "short_circuited");
	cr_assert_str_eq(outcome_name(OUTCOME_UNUSED), "unused");
}

Test(outcome, an_unknown_name_or_value_is_nothing)
{
	cr_assert_eq(outcome_from_name("sucess"), OUTCOME_NONE);
	cr_assert_eq(outcome_from_name(""), OUTCOME_NONE);
	cr_assert_eq(outcome_from_name("none"), OUTCOME_NONE);
	cr_assert_str_eq(outcome_name(OUTCOME_COUNT), "?");
	cr_assert_str_eq(outcome_name((enum outcome)-1), "?");
	cr_assert_not(outcome_is_request((enum outcome)99));
	cr_assert_not(outcome_is_error((enum outcome)-7));
}

Test(outcome, requests_are_success_and_the_three_errors)
{
	static const struct {
		enum outcome outcome;
		bool is_request, is_error;
	} table[] = {
		{ OUTCOME_NONE, false, false },
		{ OUTCOME_SUCCESS, true, false },
		{ OUTCOME_FAILURE, true, true },
		{ OUTCOME_TIMEOUT, true, true },
		{ OUTCOME_REJECTED, true, true },
		{ OUTCOME_SHORT_CIRCUITED, false, false },
		{ OUTCOME_CANCELLED, false, false },
		{ OUTCOME_IGNORED, false, false },
		{ OUTCOME_UNUSED, false, false },
	};

	cr_assert_eq(sizeof(table) / sizeof(table[0]), OUTCOME_COUNT);
	for (int i = 0; i < OUTCOME_COUNT; i++) {
		cr_assert_eq(outcome_is_request(table[i].outcome), table[i].is_request);
		cr_assert_eq(outcome_is_error(table[i].outcome), table[i].is_error);
	}
}
