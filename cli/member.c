/* SPDX-License-Identifier: MIT */
#include "cli/member.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

json_t *member_checked(json_t *value)
{
	if (!value)
		terminal_die_without_memory();
	return value;
}

void member_set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, member_checked(value)) != 0)
		terminal_die_without_memory();
}

/* Names come from environments and files in any encoding; JSON is UTF-8. */
json_t *member_text(const char *text)
{
	json_t *value = json_string(text);
	char *ascii;

	if (value)
		return value;
	ascii = strdup(text);
	if (!ascii)
		terminal_die_without_memory();
	for (char *byte = ascii; *byte; byte++) {
		if ((unsigned char)*byte >= 0x80)
			*byte = '?';
	}
	value = member_checked(json_string(ascii));
	free(ascii);
	return value;
}

void member_set_text(json_t *object, const char *key, const char *text)
{
	member_set(object, key, member_text(text));
}

void member_set_number(json_t *object, const char *key, uint64_t number)
{
	member_set(object, key, json_integer(number > LLONG_MAX ? LLONG_MAX : (json_int_t)number));
}

void member_set_real(json_t *object, const char *key, double number)
{
	member_set(object, key, json_real(isfinite(number) ? number : 0));
}

void member_set_null(json_t *object, const char *key)
{
	member_set(object, key, json_null());
}

void member_set_truth(json_t *object, const char *key, bool truth)
{
	member_set(object, key, json_boolean(truth));
}

void member_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, member_checked(value)) != 0)
		terminal_die_without_memory();
}
