/* SPDX-License-Identifier: MIT */
/* Settings back into the form that they are written in. */
#ifndef SHUNT_CLI_DESCRIBE_H
#define SHUNT_CLI_DESCRIBE_H

#include <stddef.h>

#include "core/settings.h"

#define DESCRIBE_SIZE 1024

/* "errors=25% sleep=2s": what differs from the defaults, in order of the table; "" where nothing
 * does. Into `ret` of DESCRIBE_SIZE, and returned. Read as a rule it gives the same settings. */
const char *describe_settings(const struct settings *settings, char *ret);

#endif
