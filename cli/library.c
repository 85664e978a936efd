/* SPDX-License-Identifier: MIT */
#include "cli/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

#define LIBRARY "libshunt.so"

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

static bool is_there(const char *path, char ret[PATH_MAX])
{
	return realpath(path, ret) && access(ret, R_OK) == 0;
}

static bool is_beside(const char *place, char ret[PATH_MAX])
{
	char program[PATH_MAX], path[PATH_MAX + 512];

	if (!find_program(program))
		return false;
	snprintf(path, sizeof(path), "%s%s/" LIBRARY, program, place);
	return is_there(path, ret);
}

bool library_find(char ret[PATH_MAX])
{
	if (!is_beside("../shim", ret) && !is_beside("../" SHUNT_LIBDIR, ret) &&
			!is_there(SHUNT_PREFIX "/" SHUNT_LIBDIR "/" LIBRARY, ret)) {
		terminal_complain("run: expected " LIBRARY " in ../shim beside this program or in "
				SHUNT_PREFIX "/" SHUNT_LIBDIR ", found none; build or install it");
		return false;
	}
	if (strpbrk(ret, " :")) {
		terminal_complain("run: expected a library path without space and colon, which "
				"LD_PRELOAD cannot carry, got '%s'; build or install shunt "
				"elsewhere", ret);
		return false;
	}
	return true;
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
