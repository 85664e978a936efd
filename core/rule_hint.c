/* SPDX-License-Identifier: MIT */
#include "core/rule_hint.h"

#include <string.h>

#include "core/fault_terms.h"
#include "core/format.h"
#include "core/rule_word.h"
#include "core/setting_table.h"

static const char of_faults[] = "fault rules (--fault, SHUNT_FAULT_NAME)";
static const char of_breakers[] = "breaker rules (--break, SHUNT_BREAK_NAME)";

static void append(const char *name, const char *kind, char *error, size_t size)
{
	size_t used = strlen(error);

	text_format(error + used, size - used, "; %s is of %s", name, kind);
}

/* The name in the table of the other kind, if it is in that alone. */
static const char *foreign_name(const char *name, bool is_fault)
{
	const struct fault_term *term = fault_term_find(name);
	const struct setting *setting = setting_find(name);

	if (is_fault)
		return setting && !term ? setting->name : NULL;
	return term && !setting ? term->name : NULL;
}

static bool is_lookup(const char *target)
{
	return strncmp(target + (target[0] == '^'), "dns:", 4) == 0;
}

void rule_hint(const char *text, size_t length, bool is_fault, char *error, size_t size)
{
	struct rule_words words = { text, text + length };
	struct rule_word word;
	char copy[RULE_WORD_SIZE];
	bool is_target = true;

	while (rule_word_next(&words, &word)) {
		const char *name = NULL;

		if (rule_word_copy(&word, copy)) {
			if (is_target && !is_fault && is_lookup(copy))
				name = "dns:";
			copy[strcspn(copy, "=")] = '\0';
			if (!is_target)
				name = foreign_name(copy, is_fault);
		}
		if (name) {
			append(name, is_fault ? of_breakers : of_faults, error, size);
			return;
		}
		is_target = false;
	}
}
