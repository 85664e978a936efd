/* SPDX-License-Identifier: MIT */
#include "core/text.h"

#include <string.h>

#include "core/span.h"

#define BILLION 1000000000u
#define WORD_MAX 31 /* longest word that text_nearest() looks at */

static const char too_large[] = "a smaller number";

/* A decimal number: whole part, and the fraction in billionths. */
struct number {
	uint64_t whole;
	uint32_t billionths;
};

struct unit {
	const char *name;
	uint64_t factor;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Moves *text behind the digits. False if there are none; saturates. */
static bool read_whole(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t value = 0;

	if (!is_digit(*at))
		return false;
	for (; is_digit(*at); at++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
				__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			value = UINT64_MAX;
	}
	*text = at;
	*ret = value;
	return true;
}

/* Moves *text behind a number such as 12 or 1.5. */
static bool read_number(const char **text, struct number *ret)
{
	const char *at = *text;
	struct number number = { 0, 0 };
	uint32_t place = BILLION / 10;

	if (!read_whole(&at, &number.whole))
		return false;
	if (at[0] == '.' && is_digit(at[1])) {
		for (at++; is_digit(*at); at++, place /= 10)
			number.billionths += place * (uint32_t)(*at - '0');
	}
	*text = at;
	*ret = number;
	return true;
}

static bool scale(struct number number, uint64_t factor, uint64_t *ret)
{
	__extension__ typedef unsigned __int128 wide;
	wide value = (wide)number.whole * factor + (wide)number.billionths * factor / BILLION;

	if (number.whole == UINT64_MAX || value > UINT64_MAX)
		return false;
	*ret = (uint64_t)value;
	return true;
}

static const char *read_with_unit(const char *text, const struct unit units[], const char *expected,
		uint64_t *ret)
{
	struct number number;

	if (!read_number(&text, &number))
		return expected;
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcmp(text, unit->name) == 0)
			return scale(number, unit->factor, ret) ? NULL : too_large;
	}
	return expected;
}

bool text_is_too_large(const char *expected)
{
	return expected == too_large;
}

const char *text_duration(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", BILLION },
		{ "m", 60ull * BILLION },
		{ "h", 3600ull * BILLION },
		{ NULL, 0 },
	};

	return read_with_unit(text, units, "a duration such as 250ms, 5s or 1m", ret_ns);
}

const char *text_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "B", 1 },
		{ "KB", 1000 },
		{ "KiB", 1024 },
		{ "MB", 1000000 },
		{ "MiB", 1048576 },
		{ "GB", BILLION },
		{ "GiB", 1073741824 },
		{ NULL, 0 },
	};

	return read_with_unit(text, units, "a size such as 512B, 64KB or 1MiB", ret_bytes);
}

const char *text_rate(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "B/s", 1 },
		{ "KB/s", 1000 },
		{ "KiB/s", 1024 },
		{ "MB/s", 1000000 },
		{ "MiB/s", 1048576 },
		{ "GB/s", BILLION },
		{ "GiB/s", 1073741824 },
		{ "kbit/s", 125 },
		{ "Mbit/s", 125000 },
		{ "Gbit/s", 125000000 },
		{ NULL, 0 },
	};

	return read_with_unit(text, units, "a rate such as 64KB/s or 512kbit/s", ret_bytes);
}

static bool read_percent(const char *text, uint64_t *ret_ratio)
{
	struct number number;

	if (!read_number(&text, &number) || strcmp(text, "%") != 0)
		return false;
	if (!scale(number, 10000, ret_ratio))
		*ret_ratio = UINT64_MAX;
	return true;
}

static bool read_fraction(const char *text, uint64_t *ret_ratio)
{
	uint64_t part, all;

	if (!read_whole(&text, &part) || *text++ != '/' || !read_whole(&text, &all) ||
			*text != '\0')
		return false;
	if (all == 0 || all == UINT64_MAX || part > all) {
		*ret_ratio = UINT64_MAX;
		return true;
	}
	struct number number = { part, 0 };
	uint64_t scaled;
	*ret_ratio = scale(number, 1000000, &scaled) ? scaled / all : part / (all / 1000000);
	return true;
}

/* Is the share that rounding made 0 of not one in a million above nothing? */
static bool is_more_than_nothing(const char *text)
{
	return text[strspn(text, "0.")] >= '1' && text[strspn(text, "0.")] <= '9';
}

const char *text_ratio(const char *text, uint32_t *ret_ratio)
{
	uint64_t ratio;

	if (!read_percent(text, &ratio) && !read_fraction(text, &ratio))
		return "a ratio such as 50% or 1/20";
	if (ratio > 1000000 || (ratio == 0 && is_more_than_nothing(text)))
		return "0%, or a ratio from 0.0001% to 100%";
	*ret_ratio = (uint32_t)ratio;
	return NULL;
}

const char *text_count(const char *text, uint64_t *ret)
{
	uint64_t value;

	if (!read_whole(&text, &value) || *text != '\0')
		return "a whole number";
	if (value == UINT64_MAX)
		return too_large;
	*ret = value;
	return NULL;
}

const char *text_thousandths(const char *text, uint64_t *ret)
{
	struct number number;

	if (!read_number(&text, &number) || *text != '\0')
		return "a number such as 2 or 1.5";
	return scale(number, 1000, ret) ? NULL : too_large;
}

const char *text_ports(const char *text, uint16_t *ret_low, uint16_t *ret_high)
{
	static const char expected[] = "a port from 1 to 65535, or a range such as 8000-8999";
	uint64_t low, high;

	if (!read_whole(&text, &low))
		return expected;
	high = low;
	if (*text == '-') {
		text++;
		if (!read_whole(&text, &high))
			return expected;
	}
	if (*text != '\0' || low < 1 || high > UINT16_MAX || low > high)
		return expected;
	*ret_low = (uint16_t)low;
	*ret_high = (uint16_t)high;
	return NULL;
}

int text_word_index(const char *const words[], const char *word)
{
	for (int i = 0; words[i]; i++) {
		if (strcmp(words[i], word) == 0)
			return i;
	}
	return -1;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* Letters to add, drop, change or swap with their neighbour, to get from one to the other. Both at
 * most WORD_MAX long. */
static uint8_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	uint8_t rows[3][WORD_MAX + 1];
	uint8_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		last[j] = (uint8_t)j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = (uint8_t)i;
		for (size_t j = 1; j <= b_length; j++) {
			char x = to_lower(a[i - 1]), y = to_lower(b[j - 1]);

			row[j] = (uint8_t)(last[j - 1] + (x != y));
			row[j] = least(row[j], (uint8_t)(least(last[j], row[j - 1]) + 1));
			if (i > 1 && j > 1 && x == to_lower(b[j - 2]) && y == to_lower(a[i - 2]))
				row[j] = least(row[j], (uint8_t)(before[j - 2] + 1));
		}
		uint8_t *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_length];
}

const char *text_nearest(const char *word, const char *const words[], size_t count)
{
	size_t length = strnlen(word, WORD_MAX + 1);
	size_t nearest = 1 + length / 5; /* how far off still counts as near */
	const char *found = NULL;

	if (length < 2 || length > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t other = strlen(words[i]);

		if (other > WORD_MAX)
			continue;
		size_t distance = edit_distance(word, length, words[i], other);
		/* Of two that are as near, the one that was begun. */
		bool is_nearer = !found || (strncmp(word, words[i], length) == 0 &&
				strncmp(word, found, length) != 0);
		if (distance < nearest || (distance == nearest && is_nearer)) {
			nearest = distance;
			found = words[i];
		}
	}
	return found;
}

bool text_glob(const char *glob, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			retry = text;
		} else if (*glob == '?' || *glob == *text) {
			glob++;
			text++;
		} else if (star) {
			/* Only the last star need give way: what came before it matched early. */
			glob = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

bool text_glob_any(const char *globs, const char *text)
{
	struct span rest = span_of(globs);
	char glob[256];

	while (rest.length > 0) {
		struct span item = span_trim(span_take(&rest, ','));

		if (item.length == 0 || item.length >= sizeof(glob))
			continue;
		text_copy(glob, item.length + 1, item.text);
		if (text_glob(glob, text))
			return true;
	}
	return false;
}

uint64_t text_hash(uint64_t seed, const void *bytes, size_t size)
{
	uint64_t hash = seed ? seed : 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
	return hash;
}
