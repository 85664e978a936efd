/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/fault_term.h"

Test(fault_term, a_row_finds_its_field)
{
	struct fault fault = { .after_ns = 5 };
	struct fault_term term = { .offset = offsetof(struct fault, after_ns) };

	cr_expect_eq(*(const uint64_t *)fault_term_value(&term, &fault), 5);
	*(uint64_t *)fault_term_field(&term, &fault) = 6;
	cr_expect_eq(fault.after_ns, 6);
}

Test(fault_term, kinds_are_of_two_groups)
{
	cr_expect(fault_term_is_kind(&(struct fault_term){ .group = FAULT_TERM_KIND }));
	cr_expect(fault_term_is_kind(&(struct fault_term){ .group = FAULT_TERM_LOOKUP }));
	cr_expect_not(fault_term_is_kind(&(struct fault_term){ .group = FAULT_TERM_WHEN }));
	cr_expect_not(fault_term_is_kind(&(struct fault_term){ .group = FAULT_TERM_SCOPE }));
}
