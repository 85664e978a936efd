/* SPDX-License-Identifier: MIT */
/* Read pieces of a file whose own words say where they are: any offset may be asked for. */
#ifndef SHUNT_CLI_READER_H
#define SHUNT_CLI_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of `size` bytes; false where there are fewer. Moves no offset, as all of these. */
bool reader_bytes(int fd, uint64_t offset, void *ret, size_t size);

/* The same in memory of its own, to be freed; NULL where there are fewer, or no memory. */
void *reader_copy(int fd, uint64_t offset, size_t size);

/* A terminated text; false where there is none, or it does not fit. */
bool reader_text(int fd, uint64_t offset, char *ret, size_t size);

#endif
