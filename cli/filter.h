/* SPDX-License-Identifier: MIT */
/* Is a seccomp filter in force here, which every program that is started inherits? */
#ifndef SHUNT_CLI_FILTER_H
#define SHUNT_CLI_FILTER_H

#include <stdbool.h>

#include "core/config.h"

#define FILTER_TEXT_SIZE 320

/* What the library leaves out under it, and where to look instead, into `ret` of FILTER_TEXT_SIZE.
 * False where there is none. */
bool filter_describe(const struct config *config, char *ret);

#endif
