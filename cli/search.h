/* SPDX-License-Identifier: MIT */
/* The files that execvp() would try for a command, in its order. */
#ifndef SHUNT_CLI_SEARCH_H
#define SHUNT_CLI_SEARCH_H

#include <limits.h>
#include <stdbool.h>

struct search {
	const char *command;
	const char *directory; /* where relative paths begin; "" for here */
	const char *rest;      /* of PATH; NULL at its end */
	int error;             /* ENOENT, or why a file that is there cannot be executed */
};

/* `path` is the value of PATH, or NULL. All must stay. */
struct search search_begin(const char *command, const char *path, const char *directory);

/* The next file that can be executed; false, with search->error, at the end. */
bool search_next(struct search *search, char ret_path[PATH_MAX]);

#endif
