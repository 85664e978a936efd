/* SPDX-License-Identifier: MIT */
#include "cli/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

void columns_init(struct columns *columns, const struct column *titles, size_t width)
{
	*columns = (struct columns){ .titles = titles, .width = width };
}

static void make_room(struct columns *columns)
{
	size_t capacity = columns->capacity ? columns->capacity * 2 : 64;
	char **cells = reallocarray(columns->cells, capacity, sizeof(*cells));

	if (!cells)
		terminal_die_without_memory();
	columns->cells = cells;
	columns->capacity = capacity;
}

void columns_add(struct columns *columns, const char *format, ...)
{
	va_list arguments;
	int length;

	if (columns->count == columns->capacity)
		make_room(columns);
	va_start(arguments, format);
	length = vasprintf(&columns->cells[columns->count], format, arguments);
	va_end(arguments);
	if (length < 0)
		terminal_die_without_memory();
	columns->count++;
}

static size_t column_size(const struct columns *columns, size_t column)
{
	size_t size = strlen(columns->titles[column].title);

	for (size_t i = column; i < columns->count; i += columns->width) {
		size_t length = strlen(columns->cells[i]);

		if (length > size)
			size = length;
	}
	return size;
}

static void print_cell(const struct columns *columns, size_t column, const char *text)
{
	int size = (int)column_size(columns, column);

	if (columns->titles[column].is_number)
		printf("%*s", size, text);
	else if (column + 1 < columns->width)
		printf("%-*s", size, text);
	else
		fputs(text, stdout);
	fputs(column + 1 < columns->width ? "  " : "\n", stdout);
}

void columns_print(const struct columns *columns)
{
	if (columns->count == 0)
		return;
	for (size_t i = 0; i < columns->width; i++)
		print_cell(columns, i, columns->titles[i].title);
	for (size_t i = 0; i < columns->count; i++)
		print_cell(columns, i % columns->width, columns->cells[i]);
}

void columns_finish(struct columns *columns)
{
	for (size_t i = 0; i < columns->count; i++)
		free(columns->cells[i]);
	free(columns->cells);
	*columns = (struct columns){ 0 };
}
