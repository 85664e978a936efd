/* SPDX-License-Identifier: MIT */
/* Where libshunt.so is, and how the loader is told. */
#ifndef SHUNT_CLI_LIBRARY_H
#define SHUNT_CLI_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* Beside the build this program is from, or installed with it: an absolute path that LD_PRELOAD can
 * carry. False after a complaint. */
bool library_find(char ret[PATH_MAX]);

/* Puts the library first in LD_PRELOAD of our environment. */
void library_preload(const char *path);

#endif
