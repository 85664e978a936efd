/* SPDX-License-Identifier: MIT */
#include "core/injection.h"

#include <string.h>

#include "core/order.h"
#include "core/text.h"

#define WORD_SIZE 64

static const char expect_line[] = "a line as a report has it";

size_t injection_format(const struct injection *injection, char ret[INJECTION_LINE_SIZE])
{
	return text_format(ret, INJECTION_LINE_SIZE,
			"{\"rule\": \"%s\", \"connection\": %u, \"call\": %u, \"fault\": \"%s\", "
			"\"value\": %llu}\n",
			injection->rule, injection->unit.connection, injection->unit.call,
			fault_kind_name(injection->kind), (unsigned long long)injection->value);
}

/* What is left of a line. */
struct rest {
	const char *at, *end;
};

static void skip_blanks(struct rest *rest)
{
	while (rest->at < rest->end && (*rest->at == ' ' || *rest->at == '\t' || *rest->at == '\r'))
		rest->at++;
}

static bool take(struct rest *rest, char c)
{
	skip_blanks(rest);
	if (rest->at == rest->end || *rest->at != c)
		return false;
	rest->at++;
	skip_blanks(rest);
	return true;
}

static bool take_string(struct rest *rest, char ret[WORD_SIZE])
{
	if (!take(rest, '"'))
		return false;
	const char *begin = rest->at;
	const char *quote = memchr(begin, '"', (size_t)(rest->end - begin));
	size_t length = quote ? (size_t)(quote - begin) : WORD_SIZE;

	if (length >= WORD_SIZE || memchr(begin, '\0', length))
		return false;
	memcpy(ret, begin, length);
	ret[length] = '\0';
	rest->at = quote + 1;
	return true;
}

static bool take_number(struct rest *rest, uint64_t limit, uint64_t *ret)
{
	char digits[24];
	size_t length = 0;

	while (rest->at < rest->end && *rest->at >= '0' && *rest->at <= '9' &&
			length < sizeof(digits) - 1)
		digits[length++] = *rest->at++;
	digits[length] = '\0';
	return !text_count(digits, ret) && *ret <= limit;
}

static bool take_key(struct rest *rest, char before, const char *name)
{
	char key[WORD_SIZE];

	return take(rest, before) && take_string(rest, key) && strcmp(key, name) == 0 &&
			take(rest, ':');
}

static const char *parse_values(struct rest *rest, struct injection *ret)
{
	uint64_t connection, call;
	char kind[WORD_SIZE];

	if (!take_key(rest, '{', "rule") || !take_string(rest, ret->rule))
		return expect_line;
	if (!rule_name_is_good(ret->rule, strlen(ret->rule)))
		return "the name of a rule";
	if (!take_key(rest, ',', "connection") || !take_number(rest, UINT32_MAX, &connection) ||
			!take_key(rest, ',', "call") || !take_number(rest, UINT32_MAX, &call) ||
			!take_key(rest, ',', "fault") || !take_string(rest, kind))
		return expect_line;
	if (connection == 0 || call == 0)
		return "numbers of connections and calls from 1";
	ret->unit = (struct fault_unit){ (uint32_t)connection, (uint32_t)call };
	ret->kind = fault_kind_of(kind);
	if (ret->kind == FAULT_KIND_COUNT)
		return "the name of a fault";
	if (!take_key(rest, ',', "value") || !take_number(rest, UINT64_MAX, &ret->value))
		return expect_line;
	return take(rest, '}') && rest->at == rest->end ? NULL : expect_line;
}

const char *injection_parse(const char *line, size_t length, struct injection *ret)
{
	struct rest rest = { line, line + length };
	struct injection injection;
	const char *expected = parse_values(&rest, &injection);

	if (!expected)
		*ret = injection;
	return expected;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_units(struct fault_unit a, struct fault_unit b)
{
	return a.connection != b.connection ? compare_numbers(a.connection, b.connection)
					    : compare_numbers(a.call, b.call);
}

static int compare(const void *a, const void *b)
{
	const struct injection *x = a, *y = b;
	int names = strcmp(x->rule, y->rule);

	return names ? names : compare_units(x->unit, y->unit);
}

void injection_sort(struct injection *injections, size_t count)
{
	order_sort(injections, sizeof(*injections), count, compare);
}

const struct injection *injection_find(const struct injection *injections, size_t count,
		const char *rule, struct fault_unit unit)
{
	while (count > 0) {
		const struct injection *middle = &injections[count / 2];
		int names = strcmp(rule, middle->rule);
		int order = names ? names : compare_units(unit, middle->unit);

		if (order == 0)
			return middle;
		if (order > 0) {
			injections = middle + 1;
			count--;
		}
		count /= 2;
	}
	return NULL;
}
