/* SPDX-License-Identifier: MIT */
/* Which of a few functions an ELF file brings, and which it wants from others. */
#ifndef SHUNT_CLI_SYMBOLS_H
#define SHUNT_CLI_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One bit per name, at most 32. False where the file has no table that can be read: it was not made
 * for this machine, or its sections were cut off. */
bool symbols_find(int fd, const char *const names[], size_t count, uint32_t *ret_defined,
		uint32_t *ret_wanted);

#endif
