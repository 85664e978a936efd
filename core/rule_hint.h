/* SPDX-License-Identifier: MIT */
/* What a bad rule may have been meant for: of the other kind, which goes elsewhere. */
#ifndef SHUNT_CORE_RULE_HINT_H
#define SHUNT_CORE_RULE_HINT_H

#include <stdbool.h>
#include <stddef.h>

/* Appends to the message in `error` of `size`, where a word of the rule is of the other kind:
 * "; hang is of fault rules (--fault, SHUNT_FAULT_NAME)". `is_fault`: read as a fault rule. */
void rule_hint(const char *text, size_t length, bool is_fault, char *error, size_t size);

#endif
