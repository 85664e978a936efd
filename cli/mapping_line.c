/* SPDX-License-Identifier: MIT */
#include "cli/mapping_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/segment.h"

#define REMOVED " (deleted)"

bool mapping_line_parse(char *line, struct mapping_line *ret)
{
	uint64_t begin, end;
	char flags[5];
	int path = 0;
	size_t length;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64 " %n", &begin, &end,
			flags, &ret->inode, &path) != 4 || path == 0)
		return false;
	ret->start = begin;
	ret->size = end - begin;
	ret->is_shared = flags[3] == 's';
	length = strlen(line + path);
	ret->is_removed = length >= strlen(REMOVED) &&
			strcmp(line + path + length - strlen(REMOVED), REMOVED) == 0;
	if (ret->is_removed)
		line[(size_t)path + length - strlen(REMOVED)] = '\0';
	ret->path = line + path;
	return true;
}

bool mapping_line_fits_segment(const struct mapping_line *mapping)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return mapping->is_shared &&
			mapping->size == (sizeof(struct segment) + page - 1) / page * page;
}
