/* SPDX-License-Identifier: MIT */
/* The table of settings: read by the environment, the file, `check`, `--help` and the man page. */
#ifndef SHUNT_CORE_SETTING_TABLE_H
#define SHUNT_CORE_SETTING_TABLE_H

#include "core/setting.h"

/* The rows in documented order; *ret_count of them. Static. */
const struct setting *settings_table(size_t *ret_count);

#define SETTINGS_MAX 64 /* rows, at most */

/* The row of that name, or NULL. */
const struct setting *setting_find(const char *name);

/* Was it set, by other than a default or preset? */
bool setting_is_given(const struct settings *settings, const struct setting *row);
void setting_give(struct settings *settings, const struct setting *row);

#endif
