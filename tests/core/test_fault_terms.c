/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/fault_terms.h"

Test(fault_terms, kinds_stand_in_the_order_of_their_enum)
{
	for (int kind = 0; kind < FAULT_KIND_COUNT; kind++) {
		const struct fault_term *term = fault_term_at((size_t)kind);

		cr_assert_not_null(term);
		cr_expect(fault_term_is_kind(term));
		cr_expect_eq((int)term->kind, kind, "%s", term->name);
		cr_expect_str_eq(term->name, fault_kind_name(term->kind));
		cr_expect(term->group == FAULT_TERM_LOOKUP || term->is_for_tcp || term->is_for_udp);
		cr_expect(term->group == FAULT_TERM_LOOKUP || term->where);
	}
	cr_expect_not(fault_term_is_kind(fault_term_at(FAULT_KIND_COUNT)));
}

Test(fault_terms, every_row_is_complete_and_found_by_its_name)
{
	const struct fault_term *term;
	size_t count = 0;

	for (; (term = fault_term_at(count)); count++) {
		cr_expect_eq(fault_term_find(term->name), term);
		cr_expect(strncmp(term->form, term->name, strlen(term->name)) == 0, "%s",
				term->name);
		cr_expect_gt(strlen(term->meaning), 5, "%s", term->name);
		cr_expect_eq(!term->read, !term->write, "%s", term->name);
		cr_expect_eq(strchr(term->form, '=') != NULL,
				term->read && term->name[0] != 'P', "%s", term->name);
		cr_expect_eq(strstr(term->form, "[=") != NULL, term->is_optional, "%s", term->name);
	}
	cr_expect_eq(count, 34);
	cr_expect_null(fault_term_find("elephant"));
}

Test(fault_terms, what_was_given_is_known)
{
	struct fault fault = { .kind = FAULT_KIND_COUNT };

	fault_term_give(&fault, fault_term_find("uid"));
	cr_expect(fault_term_is_given(&fault, fault_term_find("uid")));
	cr_expect_not(fault_term_is_given(&fault, fault_term_find("refuse")));
}
