/* SPDX-License-Identifier: MIT */
#include "core/fault_reader.h"

#include <string.h>

#include "core/error_set.h"
#include "core/text.h"

#define PIECE_SIZE 32

/* Copies what stands before `end` off the front of *text. False where it does not fit. */
static bool take_piece(const char **text, const char *end, char ret[PIECE_SIZE])
{
	size_t length = end ? (size_t)(end - *text) : strlen(*text);

	if (length >= PIECE_SIZE)
		return false;
	text_copy(ret, length + 1, *text);
	*text += length;
	return true;
}

/* Takes a whole number within the row's range off the front. */
static bool take_count(const struct fault_term *term, const char **text, uint32_t *ret)
{
	char digits[PIECE_SIZE];
	uint64_t count;

	if (!take_piece(text, *text + strspn(*text, "0123456789"), digits) ||
			text_count(digits, &count) || count < term->low || count > term->high)
		return false;
	*ret = (uint32_t)count;
	return true;
}

static bool take_text(const char **text, const char *expected)
{
	size_t length = strlen(expected);

	if (strncmp(*text, expected, length) != 0)
		return false;
	*text += length;
	return true;
}

/* Within the row's range, into any field of 64 bits. */
static const char *store(const struct fault_term *term, struct fault *fault, uint64_t value)
{
	if (value < term->low || value > term->high)
		return term->limits;
	*(uint64_t *)fault_term_field(term, fault) = value;
	return NULL;
}

/* What a reader of texts expected; or the row's limits, which say more of a number too large. */
static const char *expected_by(const struct fault_term *term, const char *expected)
{
	return text_is_too_large(expected) ? term->limits : expected;
}

const char *fault_reader_duration(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	uint64_t ns;
	const char *expected = text_duration(value, &ns);

	return expected ? expected_by(term, expected) : store(term, fault, ns);
}

/* What a number is followed by, in bytes; 0 where that is no unit. */
static uint32_t unit_of(const char *value, const char *(*read)(const char *text, uint64_t *ret))
{
	const char *unit = value + strspn(value, "0123456789.");
	char one[PIECE_SIZE] = "1";
	uint64_t bytes;

	if (strlen(unit) + 2 > sizeof(one))
		return 0;
	text_copy(one + 1, sizeof(one) - 1, unit);
	return read(one, &bytes) ? 0 : (uint32_t)bytes;
}

const char *fault_reader_size(const struct fault_term *term, struct fault *fault, const char *value)
{
	uint64_t bytes;
	const char *expected = text_size(value, &bytes);

	if (!expected)
		expected = store(term, fault, bytes);
	if (!expected)
		fault->unit = unit_of(value, text_size);
	return expected_by(term, expected);
}

const char *fault_reader_rate(const struct fault_term *term, struct fault *fault, const char *value)
{
	uint64_t bytes;
	const char *expected = text_rate(value, &bytes);

	if (!expected)
		expected = store(term, fault, bytes);
	if (!expected)
		fault->unit = unit_of(value, text_rate);
	return expected_by(term, expected);
}

const char *fault_reader_ratio(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	(void)term;
	return text_ratio(value, &fault->ratio);
}

const char *fault_reader_count(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	uint32_t count;

	if (!take_count(term, &value, &count) || *value)
		return term->limits;
	*(uint32_t *)fault_term_field(term, fault) = count;
	return NULL;
}

/* N or N..M */
const char *fault_reader_range(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	uint32_t low, high;

	if (!take_count(term, &value, &low))
		return term->limits;
	high = low;
	if (take_text(&value, "..") && !take_count(term, &value, &high))
		return term->limits;
	if (*value)
		return term->limits;
	if (high < low)
		return "the smaller number first, such as 1..16";
	fault->low = low;
	fault->high = high;
	return NULL;
}

/* FIRST[..LAST][+[STEP]] */
const char *fault_reader_calls(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	uint32_t first, last, step = 1;

	if (!take_count(term, &value, &first))
		return term->limits;
	last = first;
	bool has_last = take_text(&value, "..");
	if (has_last && !take_count(term, &value, &last))
		return term->limits;
	if (take_text(&value, "+")) {
		if (!has_last)
			last = UINT32_MAX;
		if (*value && !take_count(term, &value, &step))
			return term->limits;
	}
	if (*value)
		return term->limits;
	if (last < first)
		return "the smaller number first, such as 1..2";
	fault->first = first;
	fault->last = last;
	fault->step = step;
	return NULL;
}

/* DOWN/UP */
const char *fault_reader_flap(const struct fault_term *term, struct fault *fault, const char *value)
{
	const char *slash = strchr(value, '/');
	char down[PIECE_SIZE];
	uint64_t down_ns, up_ns;

	if (!slash || !take_piece(&value, slash, down) || text_duration(down, &down_ns) ||
			text_duration(slash + 1, &up_ns))
		return term->limits;
	if (down_ns < term->low || down_ns > term->high || up_ns < term->low || up_ns > term->high)
		return "two durations from 1ns to 24h, such as 2s/8s";
	fault->down_ns = down_ns;
	fault->up_ns = up_ns;
	return NULL;
}

static bool read_spread(const char *text, enum fault_spread *ret)
{
	static const char *const words[] = { "uniform", "normal", NULL };
	int index = text_word_index(words, text);

	if (index >= 0)
		*ret = (enum fault_spread)index;
	return index >= 0;
}

/* DUR[~JITTER][/normal|/uniform] */
const char *fault_reader_latency(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	static const char expected_spread[] = "~JITTER/normal or ~JITTER/uniform";
	const char *slash = strchr(value, '/'), *tilde = strchr(value, '~');
	enum fault_spread spread = FAULT_UNIFORM;
	uint64_t delay_ns, jitter_ns = 0;
	const char *expected;
	char piece[PIECE_SIZE];

	if (slash && (!tilde || tilde > slash || !read_spread(slash + 1, &spread)))
		return expected_spread;
	if (!take_piece(&value, tilde ? tilde : slash, piece))
		return term->limits;
	expected = text_duration(piece, &delay_ns);
	if (tilde && !expected) {
		value++;
		if (!take_piece(&value, slash, piece))
			return term->limits;
		expected = text_duration(piece, &jitter_ns);
	}
	if (expected)
		return expected_by(term, expected);
	if (jitter_ns > term->high)
		return term->limits;
	expected = store(term, fault, delay_ns);
	if (expected)
		return expected;
	fault->jitter_ns = jitter_ns;
	fault->spread = spread;
	return NULL;
}

const char *fault_reader_error(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	int error = error_from_name(value);

	if (strcmp(value, "EAGAIN") == 0 || strcmp(value, "EWOULDBLOCK") == 0)
		return "an error that ends a call (for EAGAIN there is the fault eagain)";
	if (strcmp(value, "EINTR") == 0)
		return "an error that ends a call (for EINTR there is the fault eintr)";
	if (error <= 0)
		return term->limits;
	fault->error = error;
	return NULL;
}

const char *fault_reader_address(
		const struct fault_term *term, struct fault *fault, const char *value)
{
	return address_parse(value, &fault->address) ? NULL : term->limits;
}

/* `low` is the value of the first word. */
const char *fault_reader_word(const struct fault_term *term, struct fault *fault, const char *value)
{
	int index = text_word_index(term->words, value);

	if (index < 0)
		return term->limits;
	*(unsigned int *)fault_term_field(term, fault) =
			(unsigned int)index + (unsigned int)term->low;
	return NULL;
}

const char *fault_reader_proc(const struct fault_term *term, struct fault *fault, const char *value)
{
	size_t length = strlen(value);

	if (length < 1 || length >= sizeof(fault->proc))
		return term->limits;
	for (size_t i = 0; i < length; i++) {
		if (value[i] <= ' ' || value[i] > '~')
			return term->limits;
	}
	text_copy(fault->proc, sizeof(fault->proc), value);
	return NULL;
}

const char *fault_reader_uid(const struct fault_term *term, struct fault *fault, const char *value)
{
	uint32_t uid;

	if (!take_count(term, &value, &uid) || *value)
		return term->limits;
	fault->uid = uid;
	fault->has_uid = true;
	return NULL;
}
