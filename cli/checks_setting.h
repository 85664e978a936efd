/* SPDX-License-Identifier: MIT */
/* Is the environment that a program begins with one in which the library works? */
#ifndef SHUNT_CLI_CHECKS_SETTING_H
#define SHUNT_CLI_CHECKS_SETTING_H

#include "cli/environment.h"
#include "cli/report.h"

/* Of what else stands in LD_PRELOAD. `preload` may be NULL. */
void check_other_preloads(const char *preload, const char *library, struct report *report);

/* Of what stands in LD_PRELOAD before the library and sees calls first. `preload` may be NULL. */
void check_earlier_preloads(const char *preload, struct report *report);

/* The kill switch, whether the program of that name is meant, the rules, the log, the segment, a
 * filter. NULL: no program begins with it, and that there is no rule in it is only warned of. */
void check_environment(const struct environment *environment, const char *name,
		struct report *report);

#endif
