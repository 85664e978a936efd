/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/fault_terms.h"
#include "core/fault_writer.h"

/* What a term reads, and how it is written. */
static const char *const values[][3] = {
	{ "timeout", "0s", "0s" },
	{ "timeout", "1001ms", "1001ms" },
	{ "timeout", "60000ms", "1m" },
	{ "timeout", "24h", "24h" },
	{ "timeout", "0.0000015s", "1500ns" },
	{ "reset", "0B", "0B" },
	{ "reset", "1000B", "1000B" },
	{ "reset", "1024B", "1024B" },
	{ "reset", "1048576MiB", "1048576MiB" },
	{ "reset", "1001B", "1001B" },
	{ "rate", "8Mbit/s", "8Mbit/s" },
	{ "rate", "1.5KiB/s", "1536B/s" },
	{ "rate", "1Gbit/s", "1Gbit/s" },
	{ "rate", "0.5KB/s", "500B/s" },
	{ "rate", "1.5MB/s", "1500KB/s" },
	{ "rate", "1.5Mbit/s", "1500kbit/s" },
	{ "rate", "0.5kbit/s", "62B/s" },
	{ "reset", "1024GiB", "1024GiB" },
	{ "reset", "1.5GB", "1500MB" },
	{ "P%", "100%", "100%" },
	{ "P%", "0%", "0%" },
	{ "P%", "0.0001%", "0.0001%" },
	{ "P%", "12.5%", "12.5%" },
	{ "P%", "50.05%", "50.05%" },
	{ "P%", "1/7", "1/7" },
	{ "short", "3..3", "3" },
	{ "calls", "2..4294967294", "2..4294967294" },
	{ "flap", "1s/60s", "1s/1m" },
	{ "latency", "1s~0s/normal", "1s" },
	{ "addr", "::ffff:10.1.2.3", "10.1.2.3" },
	{ "dir", "in", "in" },
	{ "dir", "both", "both" },
	{ "uid", "0", "0" },
};

Test(fault_writer, what_was_read_is_written_so_that_it_reads_the_same)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct fault_term *term = fault_term_find(values[i][0]);
		struct fault fault = { .kind = FAULT_KIND_COUNT }, again = fault;
		char text[FAULT_VALUE_SIZE];

		cr_assert_null(term->read(term, &fault, values[i][1]), "%s", values[i][1]);
		term->write(term, &fault, text, sizeof(text));
		cr_expect_str_eq(text, values[i][2]);
		cr_assert_null(term->read(term, &again, text), "%s", text);
		again.unit = fault.unit; /* of fractions it is another */
		cr_expect(!strcmp(term->name, "latency") ||
				memcmp(&fault, &again, sizeof(fault)) == 0, "%s", text);
	}
}
