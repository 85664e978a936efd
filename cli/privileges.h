/* SPDX-License-Identifier: MIT */
/* Programs that get rights which their caller has not: the loader obeys no LD_PRELOAD in them, and
 * takes it out of their environment. */
#ifndef SHUNT_CLI_PRIVILEGES_H
#define SHUNT_CLI_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>

/* Would the file, executed by us, be such a program? Then `ret` says by what: "set-user-ID root",
 * "it has file capabilities". False where that is not sure. */
bool privileges_are_raised(const char *path, char *ret, size_t size);

#endif
