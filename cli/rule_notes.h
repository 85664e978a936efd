/* SPDX-License-Identifier: MIT */
/* Settings of a rule that do nothing, as another that they need is not there. */
#ifndef SHUNT_CLI_RULE_NOTES_H
#define SHUNT_CLI_RULE_NOTES_H

#include "core/rule.h"

/* Prints "NAME: note: ..." for each of them. */
void rule_notes_print(const struct rule *rule);

#endif
