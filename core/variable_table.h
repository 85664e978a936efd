/* SPDX-License-Identifier: MIT */
/* The table of variables that take one value: read by the environment, into a struct config. */
#ifndef SHUNT_CORE_VARIABLE_TABLE_H
#define SHUNT_CORE_VARIABLE_TABLE_H

#include <stddef.h>

#include "core/variable.h"

/* The rows, at most 32; *ret_count of them. Those that are read elsewhere are there by name. */
const struct variable *variable_table(size_t *ret_count);

#endif
