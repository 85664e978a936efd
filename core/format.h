/* SPDX-License-Identifier: MIT */
/* Write text into a buffer. For hooks and constructors: no stdio, no locale, no allocation; pure
 * and async-signal-safe. */
#ifndef SHUNT_CORE_FORMAT_H
#define SHUNT_CORE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* snprintf with only %s %d %u %lu %llu %x %c %%, never the locale, always
 * terminated. Returns the length written (not what would have been). */
size_t text_format(char *ret, size_t size, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

/* The same for a function that has `...` of its own. `values` is left as it was. */
size_t text_format_list(char *ret, size_t size, const char *format, va_list values)
		__attribute__((format(printf, 3, 0)));

/* Copies what fits, always terminated; returns the length copied. */
size_t text_copy(char *ret, size_t size, const char *text);

/* What a message shows of something that a user wrote: printable ASCII only (the rest as \xNN),
 * shortened with "..." to fit. Always terminated; `size` at least 8. Returns ret. */
#define TEXT_QUOTE_SIZE 64
char *text_quote(char *ret, size_t size, const char *text, size_t length);

/* "expected X, got 'Y'", with ", did you mean Z?" unless `nearest` is NULL. The length written. */
size_t text_expected(char *ret, size_t size, const char *expected, const char *got, size_t length,
		const char *nearest);

/* Parts per million as text_ratio() reads them: "50%", "0.05%", "1/3". The length written. */
size_t text_share(char *ret, size_t size, unsigned int ratio);

#endif
