/* SPDX-License-Identifier: MIT */
#include "core/complaint.h"

#include <stdarg.h>
#include <string.h>

#include "core/error_set.h"
#include "core/fault_reader.h"
#include "core/fault_terms.h"
#include "core/possible.h"
#include "core/text.h"

#define COLD __attribute__((noinline, cold))

COLD bool complaint_say(const struct complaint *complaint, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	text_format_list(complaint->text, complaint->size, format, values);
	va_end(values);
	return false;
}

COLD bool complaint_first(const struct fault *fault, const struct complaint *complaint)
{
	return complaint_say(complaint, "expected the target first, such as redis:6379, got '%s'",
			fault->target.text);
}

COLD bool complaint_unknown(
		const struct fault *fault, const char *name, const struct complaint *complaint)
{
	static const char expected[] = "a fault, when or where, such as refuse, 20% or for=2m";
	const char *names[FAULT_TERMS_MAX];
	const struct fault_term *term;
	size_t count = 0;

	for (size_t i = 0; (term = fault_term_at(i)); i++) {
		if (!strchr(term->name, '%'))
			names[count++] = term->name;
	}
	const char *nearest = text_nearest(name, names, count);
	if (!nearest && fault_term_find(fault->target.text))
		return complaint_first(fault, complaint);
	text_expected(complaint->text, complaint->size, expected, name, strlen(name), nearest);
	return false;
}

/* What stands in a rule by its value alone, without a name. */
static bool is_ratio(const struct fault_term *term)
{
	return term->read == fault_reader_ratio;
}

/* A number without its unit, with it; or NULL. */
static const char *with_unit(
		const struct fault_term *term, const char *value, char *ret, size_t size)
{
	size_t digits = strspn(value, "0123456789");

	if (digits == 0 || value[digits] != '\0' || digits > 6)
		return NULL;
	if (is_ratio(term) && digits <= 2)
		text_format(ret, size, "%s%%", value);
	else if (term->read == fault_reader_duration || term->read == fault_reader_latency)
		text_format(ret, size, "%sms or %ss", value, value);
	else if (term->read == fault_reader_size)
		text_format(ret, size, "%sB or %sKB", value, value);
	else if (term->read == fault_reader_rate)
		text_format(ret, size, "%sB/s or %sKB/s", value, value);
	else
		return NULL;
	return ret;
}

COLD bool complaint_expected(const struct fault_term *term, const char *expected, const char *value,
		const struct complaint *complaint)
{
	size_t count = 0, used = 0;
	char suggested[32];

	if (!value)
		return complaint_say(
				complaint, "%s: expected %s, got nothing", term->name, expected);
	while (term->words && term->words[count])
		count++;
	const char *nearest = term->kind == FAULT_ERRNO
					      ? possible_nearest(POSSIBLE_CONNECT | POSSIBLE_SEND |
										 POSSIBLE_RECV,
								false, value)
					      : text_nearest(value, term->words, count);
	if (!nearest && expected != term->limits)
		nearest = with_unit(term, value, suggested, sizeof(suggested));
	if (!is_ratio(term))
		used = text_format(complaint->text, complaint->size, "%s: ", term->name);
	text_expected(complaint->text + used, complaint->size - used, expected, value,
			strlen(value), nearest);
	return false;
}

COLD bool complaint_twice(
		const struct fault_term *term, const char *value, const struct complaint *complaint)
{
	char quoted[TEXT_QUOTE_SIZE];

	value = value ? value : term->name;
	if (is_ratio(term))
		return complaint_say(complaint, "expected one ratio, got '%s' as well",
				text_quote(quoted, sizeof(quoted), value, strlen(value)));
	return complaint_say(complaint, "%s: expected it once, got '%s' as well", term->name,
			text_quote(quoted, sizeof(quoted), value, strlen(value)));
}

COLD bool complaint_impossible(
		const struct fault *fault, unsigned int asked, const struct complaint *complaint)
{
	static const char *const names[] = {"nothing", "connect", "send", "connect or send", "recv",
			"connect or recv", "send or recv", "connect, send or recv"};
	bool is_datagram = fault->protocol == FAULT_UDP;
	const char *name = error_name(fault->error);
	const char *nearest = possible_nearest(asked, is_datagram, name);
	char listed[96], expected[160];

	possible_list(asked, is_datagram, listed, sizeof(listed));
	size_t used = text_format(complaint->text, complaint->size, "errno: ");
	text_format(expected, sizeof(expected), "an error of %s on %s such as %s", names[asked],
			is_datagram ? "datagrams" : "a stream", listed);
	text_expected(complaint->text + used, complaint->size - used, expected, name, strlen(name),
			nearest);
	return false;
}
