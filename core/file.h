/* SPDX-License-Identifier: MIT */
/* Read a small file whole. For constructors: no stdio, no allocation. */
#ifndef SHUNT_CORE_FILE_H
#define SHUNT_CORE_FILE_H

#include <stddef.h>

/*
 * Up to `size` - 1 bytes of a regular file into `ret`, not terminated; NULL and *ret_length set, or
 * what is wrong ("no such file"). Static. Never blocks on a pipe. The descriptor is never 0 to 2
 * and is closed again. Keeps errno.
 */
const char *file_read(const char *path, char *ret, size_t size, size_t *ret_length);

#endif
