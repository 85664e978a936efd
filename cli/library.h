/* SPDX-License-Identifier: MIT */
/* Where libshunt.so is, and how the loader is told. */
#ifndef SHUNT_CLI_LIBRARY_H
#define SHUNT_CLI_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define LIBRARY_NAME "libshunt.so"
#define LIBRARY_PROBLEM_SIZE (PATH_MAX + 256)

/* Beside the build this program is from, or installed with it: an absolute path that LD_PRELOAD can
 * carry and the loader can map. False, and what was expected in `ret_problem` of
 * LIBRARY_PROBLEM_SIZE, otherwise. */
bool library_find(char ret[PATH_MAX], char *ret_problem);

/* Puts the library first in LD_PRELOAD of our environment. */
void library_preload(const char *path);

/* Takes the next entry off the front of a value of LD_PRELOAD, as the loader reads it; false at its
 * end. One that is longer than any path is passed over. */
bool library_next(const char **preload, char ret[PATH_MAX]);

/* Do both paths lead to one file? */
bool library_is(const char *path, const char *library);

/* Is the library among the entries? `preload` may be NULL. */
bool library_is_in(const char *preload, const char *library);

#endif
