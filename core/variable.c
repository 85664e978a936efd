/* SPDX-License-Identifier: MIT */
#include "core/variable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/text.h"

#define NAMES_MAX 32

const char *variable_value(char *const environ[], const char *name)
{
	size_t length = strlen(name);

	for (; environ && *environ; environ++) {
		if (strncmp(*environ, name, length) == 0 && (*environ)[length] == '=')
			return (*environ)[length + 1] ? *environ + length + 1 : NULL;
	}
	return NULL;
}

const struct variable *variable_find(
		const struct variable variables[], size_t count, struct span name)
{
	for (size_t i = 0; i < count; i++) {
		if (span_is(name, variables[i].name))
			return &variables[i];
	}
	return NULL;
}

bool variable_read(const struct variable *variable, void *record, const char *value, char *error,
		size_t size)
{
	size_t count = 0;

	if (!variable->read || value[0] == '\0')
		return true;
	const char *expected = variable->read(variable, record, value);
	if (!expected)
		return true;
	while (variable->words && variable->words[count])
		count++;
	text_expected(error, size, expected, value, strlen(value),
			text_nearest(value, variable->words, count));
	return false;
}

static const char *nearest_of(const struct variable variables[], size_t count, struct span name,
		size_t prefix)
{
	const char *names[NAMES_MAX];
	char copy[32];
	size_t length = name.length < sizeof(copy) ? name.length : sizeof(copy) - 1;

	if (count > NAMES_MAX)
		count = NAMES_MAX;
	for (size_t i = 0; i < count; i++)
		names[i] = variables[i].name;
	text_copy(copy, length + 1, name.text);
	const char *nearest = text_nearest(copy, names, count);
	if (nearest || length <= prefix)
		return nearest;
	/* SHUNT_BRAEK_PAY: the kind of rule is what is misspelt. */
	copy[prefix + strcspn(copy + prefix, "_")] = '\0';
	return text_nearest(copy, names, count);
}

void variable_unknown(const struct variable variables[], size_t count, struct span name,
		size_t prefix, char *error, size_t size)
{
	const char *nearest = nearest_of(variables, count, name, prefix);

	text_format(error, size, "no such variable%s%s%s", nearest ? ", did you mean " : "",
			nearest ? nearest : "", nearest ? "?" : "");
}

static void *field(const struct variable *variable, void *record)
{
	return (char *)record + variable->offset;
}

const char *variable_word(const struct variable *variable, void *record, const char *value)
{
	int index = text_word_index(variable->words, value);

	if (index < 0)
		return variable->expected;
	*(unsigned int *)field(variable, record) = (unsigned int)index;
	return NULL;
}

const char *variable_switch(const struct variable *variable, void *record, const char *value)
{
	int index = text_word_index(variable->words, value);

	if (index < 0)
		return variable->expected;
	*(bool *)field(variable, record) = index == 1;
	return NULL;
}

const char *variable_number(const struct variable *variable, void *record, const char *value)
{
	return text_count(value, field(variable, record));
}

const char *variable_duration(const struct variable *variable, void *record, const char *value)
{
	uint64_t ns;
	const char *expected = text_duration(value, &ns);

	if (expected)
		return expected;
	if (ns == 0)
		return variable->expected;
	*(uint64_t *)field(variable, record) = ns;
	return NULL;
}

const char *variable_path(const struct variable *variable, void *record, const char *value)
{
	if (value[0] != '/' || strlen(value) >= VARIABLE_PATH_SIZE)
		return variable->expected;
	text_copy(field(variable, record), VARIABLE_PATH_SIZE, value);
	return NULL;
}
