/* SPDX-License-Identifier: MIT */
/*
 * Variables of the environment that take one value. The table of them is the caller's, so are the
 * fields. Readers return NULL, or what was expected and have changed nothing.
 */
#ifndef SHUNT_CORE_VARIABLE_H
#define SHUNT_CORE_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/span.h"

#define VARIABLE_PATH_SIZE 256

struct variable {
	const char *name;
	/* NULL: it is read elsewhere. */
	const char *(*read)(const struct variable *variable, void *record, const char *value);
	size_t offset;            /* of its field in the record */
	const char *const *words; /* what it may be, up to NULL; or NULL */
	const char *expected;
};

/* As getenv(), which hosts replace. NULL also for an empty one. */
const char *variable_value(char *const environ[], const char *name);

/* The row of that name, or NULL. */
const struct variable *variable_find(
		const struct variable variables[], size_t count, struct span name);

/* Reads a value, but an empty one is none. False, and `error` says what was expected. */
bool variable_read(const struct variable *variable, void *record, const char *value, char *error,
		size_t size);

/* "no such variable", with the nearest name into `error`: also one of which only what stands before
 * the second underscore was misspelt. `prefix`: the length of what all begin with. */
void variable_unknown(const struct variable variables[], size_t count, struct span name,
		size_t prefix, char *error, size_t size);

/* An enum of the words' order. */
const char *variable_word(const struct variable *variable, void *record, const char *value);
/* A bool: the second of two words. */
const char *variable_switch(const struct variable *variable, void *record, const char *value);
/* uint64_t. */
const char *variable_number(const struct variable *variable, void *record, const char *value);
/* uint64_t, nanoseconds above 0. */
const char *variable_duration(const struct variable *variable, void *record, const char *value);
/* char[VARIABLE_PATH_SIZE]; absolute. */
const char *variable_path(const struct variable *variable, void *record, const char *value);

#endif
