/* SPDX-License-Identifier: MIT */
/* Can a preloaded library see what a program of this kind calls? */
#ifndef SHUNT_CLI_CHECKS_PROGRAM_H
#define SHUNT_CLI_CHECKS_PROGRAM_H

#include "cli/environment.h"
#include "cli/executable.h"
#include "cli/report.h"

/* An ELF program, and where it is. */
struct program {
	const char *path;
	const struct executable *executable;
	const struct environment *environment;
};

/* Each says one thing of it, or nothing where another check has said why it cannot work. */
void check_machine(const struct program *program, struct report *report);
void check_linkage(const struct program *program, struct report *report);
void check_libc(const struct program *program, struct report *report);
void check_go(const struct program *program, struct report *report);
void check_sanitizer(const struct program *program, struct report *report);

#endif
