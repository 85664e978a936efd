/* SPDX-License-Identifier: MIT */
/* An environment that is not our own: what a program behind env(1) gets, or what another process
 * began with. And what our own children get. */
#ifndef SHUNT_CLI_ENVIRONMENT_H
#define SHUNT_CLI_ENVIRONMENT_H

#include <stddef.h>

/* Zeroed: an empty one. */
struct environment {
	char **entries; /* NULL-terminated, for config_load(); NULL while it is empty */
	size_t count;
};

/* Ends the command without memory, as all of these that take entries. */
void environment_copy(struct environment *environment, char *const entries[]);

/* From the form of /proc/PID/environ: entries that end with NUL. */
void environment_read(struct environment *environment, const char *bytes, size_t size);

/* The first entry's value, or NULL. The environment's until it is changed. */
const char *environment_get(const struct environment *environment, const char *name);

void environment_set(struct environment *environment, const char *name, const char *value);
void environment_unset(struct environment *environment, const char *name);

/* All variables that begin so; "" for all. */
void environment_unset_all(struct environment *environment, const char *prefix);

void environment_finish(struct environment *environment);

/* Of our own, which what we start gets. */
void environment_set_own(const char *name, const char *value);

#endif
