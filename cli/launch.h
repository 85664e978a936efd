/* SPDX-License-Identifier: MIT */
/*
 * Follows a command to the program that it comes to, without starting anything: PATH, scripts and
 * their interpreters as the kernel and execvp() take them, and programs that only start others.
 */
#ifndef SHUNT_CLI_LAUNCH_H
#define SHUNT_CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/executable.h"
#include "cli/wrapper.h"

#define LAUNCH_STEPS_MAX 32
#define LAUNCH_TEXT_SIZE (PATH_MAX + 512)

enum launch_answer {
	LAUNCH_FOUND,
	LAUNCH_NOT_FOUND,
	LAUNCH_NOT_EXECUTABLE,
};

enum launch_step_kind {
	STEP_SCRIPT, /* `path` is run by `by` */
	STEP_SHELL,  /* the same, but there is no first line that says so */
	STEP_STARTER, /* `path` starts `by` */
};

struct launch_step {
	enum launch_step_kind kind;
	char *path, *by;
};

struct launch {
	enum launch_answer answer;
	char problem[LAUNCH_TEXT_SIZE]; /* why it was not found, or cannot be executed */
	struct launch_step steps[LAUNCH_STEPS_MAX];
	size_t step_count;
	/* The program at the end. */
	char path[PATH_MAX];
	struct executable executable;
	struct arguments arguments;     /* its own */
	struct environment environment; /* its own */
	char privileges[LAUNCH_TEXT_SIZE]; /* why its loader obeys no LD_PRELOAD; or "" */
	char hidden_by[PATH_MAX]; /* what starts another that cannot be told from here; or "" */
	bool may_change_root;     /* and maybe in a root of its own */
	bool is_unreadable; /* it can be executed, but nothing is known of it */
	bool is_told;      /* it is this command again, which brings the library itself */
	char lost_by[LAUNCH_TEXT_SIZE]; /* what takes the library out of the environment; or "" */
	char may_lose[LAUNCH_TEXT_SIZE]; /* what does unless it is configured otherwise; or "" */
	char directory[PATH_MAX]; /* in which relative paths begin; "" for here */
};

/* `words` ends with NULL and has one word at least. `environment` holds the library as an entry of
 * LD_PRELOAD. */
void launch_follow(struct launch *launch, char *const words[], char *const environment[],
		const char *library);

void launch_finish(struct launch *launch);

#endif
