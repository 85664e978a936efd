/* SPDX-License-Identifier: MIT */
/* Settings, read from text one by one, and made to agree with each other. */
#ifndef SHUNT_CORE_SETTINGS_H
#define SHUNT_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/setting.h"

/*
 * Reads one `name=value`. True and *settings changed; or false, *settings untouched, and in `error`
 * (`size` bytes, always terminated) the tail of the message: "sleep: expected a duration such as
 * 250ms, 5s or 1m, got '5'", with the nearest known word for a misspelt one. Durations of fields in
 * milliseconds are rounded up.
 */
bool settings_apply(struct settings *settings, const char *name, const char *value, char *error,
		size_t size);

/* What follows from several settings: an unset lease is the sleep window, an unset volume no more
 * than the calls of a count-based window. Call once after the last settings_apply(). False and
 * `error` filled where settings contradict each other. */
bool settings_finish(struct settings *settings, char *error, size_t size);

#endif
