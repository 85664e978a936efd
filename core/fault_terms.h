/* SPDX-License-Identifier: MIT */
/* The table of what a fault rule may say: read by rules, `check`, `--help` and the man page. */
#ifndef SHUNT_CORE_FAULT_TERMS_H
#define SHUNT_CORE_FAULT_TERMS_H

#include "core/fault_term.h"

/* Rows of kinds stand in the order of enum fault_kind. NULL past the last. Static. */
const struct fault_term *fault_term_at(size_t index);

#define FAULT_TERMS_MAX 64

/* The row of that name, or NULL. */
const struct fault_term *fault_term_find(const char *name);

bool fault_term_is_given(const struct fault *fault, const struct fault_term *term);
void fault_term_give(struct fault *fault, const struct fault_term *term);

#endif
