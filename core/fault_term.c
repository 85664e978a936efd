/* SPDX-License-Identifier: MIT */
#include "core/fault_term.h"

void *fault_term_field(const struct fault_term *term, struct fault *fault)
{
	return (char *)fault + term->offset;
}

const void *fault_term_value(const struct fault_term *term, const struct fault *fault)
{
	return (const char *)fault + term->offset;
}

bool fault_term_is_kind(const struct fault_term *term)
{
	return term->group == FAULT_TERM_KIND || term->group == FAULT_TERM_LOOKUP;
}
