/* SPDX-License-Identifier: MIT */
/* One line of /proc/PID/maps. */
#ifndef SHUNT_CLI_MAPPING_LINE_H
#define SHUNT_CLI_MAPPING_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct mapping_line {
	uint64_t start, size;
	uint64_t inode;
	bool is_shared;
	bool is_removed;  /* the file is not, or never was, under that name */
	const char *path; /* in the line, without the mark of a removed one */
};

/* Takes the newline and the mark of a removed file out of the line. False for anything else. */
bool mapping_line_parse(char *line, struct mapping_line *ret);

/* Is it as large as a segment, and shared? */
bool mapping_line_fits_segment(const struct mapping_line *mapping);

#endif
