/* SPDX-License-Identifier: MIT */
/* env(1): it may stand in the first line of a script, and it is what takes the library away. */
#ifndef SHUNT_CLI_WRAPPER_ENV_H
#define SHUNT_CLI_WRAPPER_ENV_H

#include <limits.h>
#include <stdbool.h>

#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/wrapper_option.h"

/* As wrapper_open(); the directory that it changes to, or "", into `ret_directory` of PATH_MAX. */
enum wrapper_answer wrapper_env_open(struct arguments *arguments, struct environment *environment,
		char *ret_directory);

/* Sets NAME=VALUE; false for a word that is none. */
bool wrapper_env_assign(struct environment *environment, const char *word);

#endif
