/* SPDX-License-Identifier: MIT */
/*
 * How the value of a setting is read: the functions that rows of the table name. Each returns NULL
 * and has changed the row's field, or what was expected, and has changed nothing.
 */
#ifndef SHUNT_CORE_READER_H
#define SHUNT_CORE_READER_H

#include "core/setting.h"

const char *reader_ratio(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_count(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_ns(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_ms(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_word(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_switch(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_window(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_probes(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_backoff(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_refusal(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_error(const struct setting *row, struct settings *settings,
		const char *value);
const char *reader_place(const struct setting *row, struct settings *settings,
		const char *value);

#endif
