/* SPDX-License-Identifier: MIT */
/* A table for people: as wide as its widest cells, numbers to the right. Not thread-safe. */
#ifndef SHUNT_CLI_COLUMNS_H
#define SHUNT_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

struct column {
	const char *title;
	bool is_number;
};

struct columns {
	const struct column *titles;
	size_t width; /* how many columns */
	char **cells; /* row by row */
	size_t count, capacity;
};

/* `titles` must stay. */
void columns_init(struct columns *columns, const struct column *titles, size_t width);

/* The next cell: left to right, then the next row. Ends the command without memory. */
void columns_add(struct columns *columns, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

/* To standard output, under the titles; nothing for a table without rows. */
void columns_print(const struct columns *columns);

void columns_finish(struct columns *columns);

#endif
