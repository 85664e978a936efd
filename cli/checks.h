/* SPDX-License-Identifier: MIT */
/* Can the library work in the program that a command comes to? Every check, in order. */
#ifndef SHUNT_CLI_CHECKS_H
#define SHUNT_CLI_CHECKS_H

#include <stdbool.h>

#include "cli/launch.h"
#include "cli/report.h"

struct subject {
	/* Followed with the environment that `run` would make. */
	const struct launch *launch;
	const char *library;         /* its path; "" where there is none */
	const char *library_problem; /* why it cannot be preloaded, or NULL */
	const char *other_preloads;  /* LD_PRELOAD without it, or NULL */
};

/* All checks, in order. */
void checks_make(const struct subject *subject, struct report *report);

/* Only those whose NO means that the program would run as if there were no library, and of what is
 * less only what is all but sure. A few reads. */
void checks_make_for_run(const struct subject *subject, struct report *report);

#endif
