/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/fault_reader.h"
#include "core/fault_terms.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct fault fault;

static const char *read(const char *name, const char *value)
{
	const struct fault_term *term = fault_term_find(name);

	cr_assert_not_null(term);
	return term->read(term, &fault, value);
}

static const struct {
	const char *text;
	uint32_t first, last, step;
} calls[] = {
	{ "3", 3, 3, 1 },
	{ "3..5", 3, 5, 1 },
	{ "3..3", 3, 3, 1 },
	{ "3+", 3, UINT32_MAX, 1 },
	{ "3+2", 3, UINT32_MAX, 2 },
	{ "3..9+2", 3, 9, 2 },
	{ "3..9+", 3, 9, 1 },
	{ "4294967294", 4294967294u, 4294967294u, 1 },
};

Test(fault_reader, calls_are_numbers_from_one)
{
	static const char *const wrong[] = {"", "x", "0", "3..", "..3", "3-5", "3..2", "3+x", "3+0",
			"3.5", "-1", "3 ", "4294967295", "99999999999999999999999999999999999999",
			"3++", "3+2+2"};

	for (size_t i = 0; i < COUNT(calls); i++) {
		cr_expect_null(read("calls", calls[i].text));
		cr_expect(fault.first == calls[i].first && fault.last == calls[i].last &&
				fault.step == calls[i].step, "%s", calls[i].text);
	}
	struct fault before = fault;
	for (size_t i = 0; i < COUNT(wrong); i++)
		cr_expect_not_null(read("calls", wrong[i]), "%s", wrong[i]);
	cr_expect_arr_eq(&fault, &before, sizeof(fault));
}

Test(fault_reader, a_delay_has_a_jitter_and_its_spread)
{
	static const char *const wrong[] = {"", "~", "1s~", "~1s", "1s/normal", "1s~1s/", "1s~1s/x",
			"1s/1s~1s", "25h", "1s~25h", "1s~1s~1s",
			"1s~00000000000000000000000000000000000000001s"};

	cr_expect_null(read("latency", "300ms"));
	cr_expect(fault.delay_ns == 300000000 && fault.jitter_ns == 0);
	cr_expect_null(read("latency", "300ms~50ms"));
	cr_expect(fault.jitter_ns == 50000000 && fault.spread == FAULT_UNIFORM);
	cr_expect_null(read("latency", "300ms~0ns/normal"));
	cr_expect(fault.jitter_ns == 0 && fault.spread == FAULT_NORMAL);
	cr_expect_null(read("latency", "1s~2s/uniform"));
	cr_expect(fault.jitter_ns == 2000000000 && fault.spread == FAULT_UNIFORM);
	struct fault before = fault;
	for (size_t i = 0; i < COUNT(wrong); i++)
		cr_expect_not_null(read("latency", wrong[i]), "%s", wrong[i]);
	cr_expect_arr_eq(&fault, &before, sizeof(fault));
}

Test(fault_reader, words_become_their_enums)
{
	cr_expect_null(read("dir", "out"));
	cr_expect_eq(fault.direction, FAULT_OUT);
	cr_expect_null(read("dir", "both"));
	cr_expect_eq(fault.direction, FAULT_BOTH);
	cr_expect_null(read("per", "call"));
	cr_expect_eq(fault.per, FAULT_PER_CALL);
	cr_expect_null(read("proto", "udp"));
	cr_expect_eq(fault.protocol, FAULT_UDP);
	cr_expect_not_null(read("dir", "IN"));
}

Test(fault_reader, programs_are_printable_globs)
{
	char text[FAULT_PROC_SIZE + 1] = "";

	memset(text, 'a', FAULT_PROC_SIZE);
	cr_expect_not_null(read("proc", text));
	text[FAULT_PROC_SIZE - 1] = '\0';
	cr_expect_null(read("proc", text));
	cr_expect_not_null(read("proc", "caf\xc3\xa9"));
	cr_expect_not_null(read("proc", "a\x7f"));
}

Test(fault_reader, numbers_keep_their_range)
{
	cr_expect_null(read("uid", "4294967294"));
	cr_expect_not_null(read("uid", "4294967295"), "that is no user");
	cr_expect_null(read("maxconn", "0"));
	cr_expect_not_null(read("corrupt", "0"));
	cr_expect_not_null(read("times", "1000000001"));
	cr_expect_not_null(read("for", "86401s"));
	cr_expect_null(read("reset", "1048576MiB"));
	cr_expect_not_null(read("reset", "1048577MiB"));
}
