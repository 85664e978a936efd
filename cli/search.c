/* SPDX-License-Identifier: MIT */
#include "cli/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_PATH "/bin:/usr/bin" /* that of execvp() */

struct search search_begin(const char *command, const char *path, const char *directory)
{
	struct search search = { .command = command, .directory = directory, .error = ENOENT };

	if (strchr(command, '/'))
		search.rest = "";
	else if (command[0] != '\0')
		search.rest = path ? path : DEFAULT_PATH;
	return search;
}

/* Where the command is a path there is one candidate, as with an empty PATH. */
static bool take_candidate(struct search *search, char ret[PATH_MAX])
{
	size_t length;
	int written;

	if (!search->rest)
		return false;
	if (strchr(search->command, '/')) {
		bool is_relative = search->command[0] != '/' && search->directory[0] != '\0';

		search->rest = NULL;
		written = snprintf(ret, PATH_MAX, "%s%s%s", is_relative ? search->directory : "",
				is_relative ? "/" : "", search->command);
		return written < PATH_MAX;
	}
	do {
		length = strcspn(search->rest, ":");
		written = snprintf(ret, PATH_MAX, "%.*s%s%s", (int)length, search->rest,
				length ? "/" : "", search->command);
		search->rest = search->rest[length] == ':' ? search->rest + length + 1 : NULL;
	} while (written >= PATH_MAX && search->rest);
	return written < PATH_MAX;
}

/* As execve() would see it; what it says of a file that is there counts for more than ENOENT. */
static bool is_executable(struct search *search, const char *path)
{
	struct stat file;

	if (stat(path, &file) != 0) {
		if (errno == EACCES)
			search->error = EACCES;
		return false;
	}
	if (S_ISREG(file.st_mode) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
		return true;
	search->error = EACCES;
	return false;
}

bool search_next(struct search *search, char ret_path[PATH_MAX])
{
	while (take_candidate(search, ret_path)) {
		if (is_executable(search, ret_path))
			return true;
	}
	return false;
}
