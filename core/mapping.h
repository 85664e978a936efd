/* SPDX-License-Identifier: MIT */
/*
 * A file of fixed size and format, mapped and shared: made complete before anyone sees it, checked
 * before it is trusted, and backed by real space, so that touching it never raises SIGBUS.
 *
 * For start-up, inside other people's processes: no allocation, no stdio; keeps no descriptor and
 * leaves 0 to 2 as they are, closed or not.
 */
#ifndef SHUNT_CORE_MAPPING_H
#define SHUNT_CORE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>

struct mapping_format {
	size_t size;
	/* Zeroed memory becomes a valid file. */
	void (*fill)(void *memory);
	/* NULL for a valid file; or what is wrong with it, static text. */
	const char *(*check)(const void *memory);
};

/*
 * Attaches the file at `path`; where it is missing and `make` is set, makes it first (mode 0600,
 * whatever the umask). Of several that make it at once all get the same file. A file that is not a
 * plain one of ours (owner, mode, links, size, space, format) is refused and never written to.
 * NULL and *ret_why, static text such as "its owner is another user", where it can't be had.
 */
void *mapping_open(const char *path, const struct mapping_format *format, bool make,
		const char **ret_why);

/* Shared with forked children only. NULL without memory. */
void *mapping_open_private(const struct mapping_format *format);

void mapping_close(void *memory, size_t size);

#endif
