/* SPDX-License-Identifier: MIT */
/* Does the library work in a running process, and what does it guard there? */
#ifndef SHUNT_CLI_CHECKS_PROCESS_H
#define SHUNT_CLI_CHECKS_PROCESS_H

#include "cli/patient.h"
#include "cli/report.h"

/* All checks in order; where the library is at work, then a table of the connections to standard
 * output. */
void checks_make_of_process(const struct patient *patient, struct report *report);

#endif
