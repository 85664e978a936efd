/* SPDX-License-Identifier: MIT */
#include "core/format.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* Where text_format() has got to. */
struct sink {
	char *at;
	char *end; /* the place of the terminator */
};

static void put(struct sink *sink, char c)
{
	if (sink->at < sink->end)
		*sink->at++ = c;
}

static void put_text(struct sink *sink, const char *text)
{
	for (text = text ? text : "(null)"; *text; text++)
		put(sink, *text);
}

static void put_number(struct sink *sink, unsigned long long value, unsigned int base)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = "0123456789abcdef"[value % base];
	while (value /= base);
	while (count)
		put(sink, digits[--count]);
}

static void put_signed(struct sink *sink, int value)
{
	if (value < 0)
		put(sink, '-');
	put_number(sink, value < 0 ? -(unsigned long long)value : (unsigned long long)value, 10);
}

static unsigned long long take_unsigned(va_list *values, int longs)
{
	if (longs == 0)
		return va_arg(*values, unsigned int);
	return longs == 1 ? va_arg(*values, unsigned long) : va_arg(*values, unsigned long long);
}

/* One conversion, `format` behind its %. Returns its last character. */
static const char *put_conversion(struct sink *sink, const char *format, va_list *values)
{
	int longs = 0;

	for (; *format == 'l'; format++)
		longs++;
	switch (*format) {
	case 's':
		put_text(sink, va_arg(*values, const char *));
		break;
	case 'd':
		put_signed(sink, va_arg(*values, int));
		break;
	case 'u':
		put_number(sink, take_unsigned(values, longs), 10);
		break;
	case 'x':
		put_number(sink, take_unsigned(values, longs), 16);
		break;
	case 'c':
		put(sink, (char)va_arg(*values, int));
		break;
	case '\0':
		return format - 1;
	default:
		put(sink, *format);
	}
	return format;
}

size_t text_format_list(char *ret, size_t size, const char *format, va_list values)
{
	va_list rest;

	if (size == 0)
		return 0;
	struct sink sink = { ret, ret + size - 1 };
	va_copy(rest, values);
	for (; *format; format++) {
		if (*format == '%')
			format = put_conversion(&sink, format + 1, &rest);
		else
			put(&sink, *format);
	}
	va_end(rest);
	*sink.at = '\0';
	return (size_t)(sink.at - ret);
}

size_t text_format(char *ret, size_t size, const char *format, ...)
{
	va_list values;
	size_t length;

	va_start(values, format);
	length = text_format_list(ret, size, format, values);
	va_end(values);
	return length;
}

size_t text_copy(char *ret, size_t size, const char *text)
{
	if (size == 0)
		return 0;
	size_t length = strnlen(text, size - 1);
	memcpy(ret, text, length);
	ret[length] = '\0';
	return length;
}

char *text_quote(char *ret, size_t size, const char *text, size_t length)
{
	size_t used = 0, fits = 0; /* `fits`: how much leaves room for the dots */

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_plain = c >= 0x20 && c < 0x7f && c != '\\';
		size_t width = is_plain ? 1 : 4;

		if (used + width >= size) {
			memcpy(ret + fits, "...", 4);
			return ret;
		}
		if (is_plain)
			ret[used] = (char)c;
		else
			memcpy(ret + used, (char[]){ '\\', 'x', "0123456789abcdef"[c >> 4],
				"0123456789abcdef"[c & 15] }, 4);
		used += width;
		if (used + 4 <= size)
			fits = used;
	}
	ret[used] = '\0';
	return ret;
}

size_t text_expected(char *ret, size_t size, const char *expected, const char *got, size_t length,
		const char *nearest)
{
	char quoted[TEXT_QUOTE_SIZE];

	text_quote(quoted, sizeof(quoted), got, length);
	return text_format(ret, size, "expected %s, got '%s'%s%s%s", expected, quoted,
			nearest ? ", did you mean " : "", nearest ? nearest : "",
			nearest ? "?" : "");
}

static size_t put_percent(char *ret, size_t size, unsigned int ratio)
{
	char fraction[8] = ".0000";
	unsigned int digits = 4;

	for (unsigned int rest = ratio % 10000; rest; rest /= 10, digits--)
		fraction[digits] = (char)('0' + rest % 10);
	for (digits = 4; digits > 0 && fraction[digits] == '0'; digits--)
		fraction[digits] = '\0';
	return text_format(ret, size, "%u%s%%", ratio / 10000, digits ? fraction : "");
}

size_t text_share(char *ret, size_t size, unsigned int ratio)
{
	const unsigned long long million = 1000000;

	if (ratio % 100 == 0)
		return put_percent(ret, size, ratio);
	/* 33.3333% was one in three, which is rounded down. */
	for (unsigned int all = 3; all <= 1000; all++) {
		unsigned int part = (unsigned int)((ratio * (all + 0ull) + million - 1) / million);

		if (part * million / all == ratio && (part == 1 || all <= 20))
			return text_format(ret, size, "%u/%u", part, all);
	}
	return put_percent(ret, size, ratio);
}
