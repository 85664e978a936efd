/* SPDX-License-Identifier: MIT */
/* Programs that only start another one, such as env(1), nice(1) and sudo(8): what they start, and
 * what they do to its environment. */
#ifndef SHUNT_CLI_WRAPPER_H
#define SHUNT_CLI_WRAPPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/wrapper_option.h"

struct wrapped {
	/* It takes LD_PRELOAD and the rules away, unless its configuration says otherwise. */
	bool may_drop;
	bool may_change_root;     /* then the library must be there, too */
	char directory[PATH_MAX]; /* where it starts it; "" for here */
};

/*
 * `name` is the base name of the program that arguments->words[0] starts. Changes `arguments` and
 * `environment` to those of what it starts with WRAPPER_RUNS, and `environment` with WRAPPER_HIDES.
 * What it does not understand it leaves alone, and answers WRAPPER_HIDES.
 */
enum wrapper_answer wrapper_open(const char *name, struct arguments *arguments,
		struct environment *environment, struct wrapped *ret);

/* The same for a script of that name: WRAPPER_NONE or WRAPPER_HIDES, and nothing is changed. */
enum wrapper_answer wrapper_open_script(const char *name, struct wrapped *ret);

/* The same for a loader that is run as a program: ld-linux-x86-64.so.2 PROGRAM. */
enum wrapper_answer wrapper_open_loader(struct arguments *arguments);

#endif
