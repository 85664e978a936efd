/* SPDX-License-Identifier: MIT */
/* What users type as a fault rule, and what a report of theirs holds: line by line, both. */
#include <string.h>

#include "core/fault_text.h"
#include "core/injection.h"
#include "core/setting.h"
#include "tests/fuzz/fuzz.h"

#define DAY_NS 86400000000000ull
#define LINES_MAX 64

static void check_message(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	FUZZ_EXPECT(length > 0 && length < size);
	for (size_t i = 0; i < length; i++)
		FUZZ_EXPECT(text[i] >= 0x20 && text[i] < 0x7f);
}

static void check_values(const struct fault *fault)
{
	FUZZ_EXPECT(fault->ratio <= RATIO_ONE && fault->first <= fault->last);
	FUZZ_EXPECT(fault->first == 0 || fault->step > 0);
	FUZZ_EXPECT(fault->delay_ns <= DAY_NS && fault->jitter_ns <= DAY_NS);
	FUZZ_EXPECT(fault->after_ns <= DAY_NS && fault->for_ns <= DAY_NS);
	FUZZ_EXPECT(!fault->down_ns == !fault->up_ns && fault->low <= fault->high + fault->low);
	FUZZ_EXPECT(memchr(fault->proc, '\0', sizeof(fault->proc)));
	if (fault->target.is_excluded) {
		FUZZ_EXPECT(fault->kind == FAULT_KIND_COUNT);
		return;
	}
	FUZZ_EXPECT((unsigned int)fault->kind < FAULT_KIND_COUNT);
	FUZZ_EXPECT(fault->is_lookup == !fault->where);
	FUZZ_EXPECT(fault->kind != FAULT_SHORT || (fault->low >= 1 && fault->low <= fault->high));
	FUZZ_EXPECT(fault->kind != FAULT_RATE || fault->bytes > 0);
	FUZZ_EXPECT((fault->kind == FAULT_ERRNO) == (fault->error > 0));
}

/* The same rule comes of its own description, unless something was shortened. */
static void check_description(const struct fault *fault)
{
	char text[1024], again_text[1024], error[256];
	struct fault again;

	fault_describe(fault, text, sizeof(text));
	FUZZ_EXPECT(strnlen(text, sizeof(text)) < sizeof(text));
	if (strchr(fault->target.text, '\\') || strstr(fault->target.text, "..."))
		return;
	FUZZ_EXPECT(fault_parse("X", text, strlen(text), &again, error, sizeof(error)));
	fault_describe(&again, again_text, sizeof(again_text));
	FUZZ_EXPECT(strcmp(text, again_text) == 0);
	FUZZ_EXPECT(again.kind == fault->kind && again.ratio == fault->ratio);
	FUZZ_EXPECT(again.delay_ns == fault->delay_ns && again.bytes == fault->bytes);
	FUZZ_EXPECT(again.jitter_ns == fault->jitter_ns && again.where == fault->where);
	FUZZ_EXPECT(again.per == fault->per && again.direction == fault->direction);
	FUZZ_EXPECT(again.first == fault->first && again.last == fault->last);
}

static void check_choice(const struct fault *fault)
{
	static const uint64_t elapsed[] = { 0, 1000000000, 60000000000, DAY_NS, UINT64_MAX };

	for (uint32_t i = 0; i < 5; i++) {
		struct fault_unit unit = { i + 1, 5 - i };
		struct fault_choice choice = fault_choose(fault, 1, unit, elapsed[i]);
		struct fault_choice same = fault_choose(fault, 1, unit, elapsed[i]);

		FUZZ_EXPECT((unsigned int)choice.reason < FAULT_REASON_COUNT);
		FUZZ_EXPECT(choice.reason == same.reason && choice.value == same.value);
		FUZZ_EXPECT(fault->ratio || choice.reason != FAULT_STRIKES);
		FUZZ_EXPECT(fault->kind != FAULT_LATENCY ||
				choice.value <= fault->delay_ns + 3 * fault->jitter_ns);
		FUZZ_EXPECT(fault->kind != FAULT_SHORT || choice.reason != FAULT_STRIKES ||
				(choice.value >= fault->low && choice.value <= fault->high));
	}
}

static void give_rule(const char *text, size_t length)
{
	struct fault fault;
	char error[256];

	if (!fault_parse("X", text, length, &fault, error, sizeof(error))) {
		check_message(error, sizeof(error));
		return;
	}
	check_values(&fault);
	check_description(&fault);
	check_choice(&fault);
}

static void give_line(const char *text, size_t length)
{
	struct injection injection, again;
	char line[INJECTION_LINE_SIZE];
	const char *expected = injection_parse(text, length, &injection);

	if (expected) {
		check_message(expected, 64);
		return;
	}
	size_t size = injection_format(&injection, line);
	FUZZ_EXPECT(size < sizeof(line) && line[size - 1] == '\n');
	FUZZ_EXPECT(!injection_parse(line, size - 1, &again));
	FUZZ_EXPECT(strcmp(injection.rule, again.rule) == 0 && injection.kind == again.kind);
	FUZZ_EXPECT(injection.value == again.value && injection.unit.call == again.unit.call);
	FUZZ_EXPECT(injection_find(&again, 1, injection.rule, injection.unit) == &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	for (int i = 0; i < LINES_MAX && at < end; i++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		give_rule(at, (size_t)(stop - at));
		give_line(at, (size_t)(stop - at));
		at = stop + 1;
	}
	return 0;
}
