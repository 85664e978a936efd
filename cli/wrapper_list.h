/* SPDX-License-Identifier: MIT */
/* The programs that only start another one, but for env(1): how their command lines are read, and
 * what becomes of the environment. */
#ifndef SHUNT_CLI_WRAPPER_LIST_H
#define SHUNT_CLI_WRAPPER_LIST_H

#include <stdbool.h>

#include "cli/wrapper_option.h"

enum effect {
	EFFECT_NONE,
	EFFECT_MAY_DROP, /* unless it is configured otherwise */
	EFFECT_DROPS,
};

struct wrapper {
	const char *name;
	struct wrapper_options options;
	bool has_first_word; /* it may have one before its options */
	int operands;        /* words before the command */
	enum effect effect;
	const char *drop_options; /* " --login -l ": then EFFECT_DROPS */
	const char *keep_options; /* then EFFECT_NONE */
	const char *unset_option; /* followed by LD_PRELOAD: as drop_options */
	const char *set_option;   /* the same: as keep_options */
	const char *verbs;        /* it starts something with these as first words alone */
	bool is_hiding;           /* what it starts is not told by its command line */
	bool may_change_root;
};

/* NULL for a name that is not listed. */
const struct wrapper *wrapper_find(const char *name);

#endif
