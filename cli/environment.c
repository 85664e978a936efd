/* SPDX-License-Identifier: MIT */
#include "cli/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

static void add(struct environment *environment, char *entry)
{
	char **entries = realloc(environment->entries,
			(environment->count + 2) * sizeof(*environment->entries));

	if (!entries || !entry)
		terminal_die_without_memory();
	entries[environment->count++] = entry;
	entries[environment->count] = NULL;
	environment->entries = entries;
}

void environment_copy(struct environment *environment, char *const entries[])
{
	*environment = (struct environment){ 0 };
	for (size_t i = 0; entries[i]; i++)
		add(environment, strdup(entries[i]));
}

void environment_read(struct environment *environment, const char *bytes, size_t size)
{
	*environment = (struct environment){ 0 };
	for (size_t at = 0; at < size;) {
		size_t length = strnlen(bytes + at, size - at);

		if (length > 0)
			add(environment, strndup(bytes + at, length));
		at += length + 1;
	}
}

static bool entry_is(const char *entry, const char *name)
{
	size_t length = strlen(name);

	return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

const char *environment_get(const struct environment *environment, const char *name)
{
	for (size_t i = 0; i < environment->count; i++) {
		if (entry_is(environment->entries[i], name))
			return environment->entries[i] + strlen(name) + 1;
	}
	return NULL;
}

static void remove_at(struct environment *environment, size_t index)
{
	free(environment->entries[index]);
	/* With the NULL at the end. */
	memmove(&environment->entries[index], &environment->entries[index + 1],
			(environment->count - index) * sizeof(*environment->entries));
	environment->count--;
}

void environment_set(struct environment *environment, const char *name, const char *value)
{
	char *entry;

	environment_unset(environment, name);
	if (asprintf(&entry, "%s=%s", name, value) < 0)
		terminal_die_without_memory();
	add(environment, entry);
}

void environment_unset(struct environment *environment, const char *name)
{
	for (size_t i = environment->count; i-- > 0;) {
		if (entry_is(environment->entries[i], name))
			remove_at(environment, i);
	}
}

void environment_unset_all(struct environment *environment, const char *prefix)
{
	for (size_t i = environment->count; i-- > 0;) {
		if (strncmp(environment->entries[i], prefix, strlen(prefix)) == 0)
			remove_at(environment, i);
	}
}

void environment_finish(struct environment *environment)
{
	environment_unset_all(environment, "");
	free(environment->entries);
	*environment = (struct environment){ 0 };
}

void environment_set_own(const char *name, const char *value)
{
	if (setenv(name, value, 1) != 0)
		terminal_die_without_memory();
}
