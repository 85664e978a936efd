/* SPDX-License-Identifier: MIT */
#include "cli/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/terminal.h"

#define SEPARATORS " :"

/* The directory of this program, with its last slash. */
static bool find_program(char ret[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (length <= 0)
		return false;
	ret[length] = '\0';
	*(strrchr(ret, '/') + 1) = '\0';
	return true;
}

/* A path that is there goes into `ret`, and it counts as found where it can be read, too. */
static bool is_readable(const char *path, char ret[PATH_MAX])
{
	char found[PATH_MAX];

	if (!realpath(path, found))
		return false;
	strcpy(ret, found);
	return access(ret, R_OK) == 0;
}

static bool is_beside(const char *place, char ret[PATH_MAX])
{
	char program[PATH_MAX], path[PATH_MAX + 512];

	if (!find_program(program))
		return false;
	snprintf(path, sizeof(path), "%s%s/" LIBRARY_NAME, program, place);
	return is_readable(path, ret);
}

static bool is_executable_there(const char *path)
{
	struct statvfs mount;

	return statvfs(path, &mount) != 0 || !(mount.f_flag & ST_NOEXEC);
}

bool library_find(char ret[PATH_MAX], char *ret_problem)
{
	ret[0] = '\0';
	if (!is_beside("../shim", ret) && !is_beside("../" SHUNT_LIBDIR, ret) &&
			!is_readable(SHUNT_PREFIX "/" SHUNT_LIBDIR "/" LIBRARY_NAME, ret)) {
		if (ret[0] == '\0')
			snprintf(ret_problem, LIBRARY_PROBLEM_SIZE,
					"expected " LIBRARY_NAME " in ../shim beside this program "
					"or in " SHUNT_PREFIX "/" SHUNT_LIBDIR ", found none; "
					"build or install it");
		else
			snprintf(ret_problem, LIBRARY_PROBLEM_SIZE,
					"expected a library that this user can read, got '%s'; "
					"give it mode 0755", ret);
		return false;
	}
	if (strpbrk(ret, SEPARATORS)) {
		snprintf(ret_problem, LIBRARY_PROBLEM_SIZE,
				"expected a library path without space and colon, which "
				"LD_PRELOAD cannot carry, got '%s'; build or install shunt "
				"elsewhere", ret);
		return false;
	}
	if (is_executable_there(ret))
		return true;
	snprintf(ret_problem, LIBRARY_PROBLEM_SIZE,
			"expected a library on a file system without the option noexec, under "
			"which the loader cannot map it, got '%s'; build or install shunt "
			"elsewhere", ret);
	return false;
}

void library_preload(const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	char *value;

	if (!others || others[0] == '\0') {
		if (setenv("LD_PRELOAD", path, 1) != 0)
			terminal_die_without_memory();
		return;
	}
	if (asprintf(&value, "%s:%s", path, others) < 0 || setenv("LD_PRELOAD", value, 1) != 0)
		terminal_die_without_memory();
	free(value);
}

bool library_next(const char **preload, char ret[PATH_MAX])
{
	while (**preload) {
		const char *entry = *preload + strspn(*preload, SEPARATORS);
		size_t length = strcspn(entry, SEPARATORS);

		*preload = entry + length;
		if (length == 0 || length >= PATH_MAX)
			continue;
		memcpy(ret, entry, length);
		ret[length] = '\0';
		return true;
	}
	return false;
}

bool library_is(const char *path, const char *library)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(library, &b) == 0 && a.st_dev == b.st_dev &&
			a.st_ino == b.st_ino;
}

bool library_is_in(const char *preload, const char *library)
{
	char entry[PATH_MAX];

	while (preload && library_next(&preload, entry)) {
		if (library_is(entry, library))
			return true;
	}
	return false;
}
