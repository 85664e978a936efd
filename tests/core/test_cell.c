/* SPDX-License-Identifier: MIT */
#include "core/cell.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

static struct cell cell;

static uint64_t total(enum cell_total which)
{
	return atomic_load_explicit(&cell.totals[which], memory_order_relaxed);
}

Test(cell, totals_are_named_in_the_order_of_the_table)
{
	cr_assert_str_eq(cell_total_name(CELL_TOTAL_success), "success");
	cr_assert_str_eq(cell_total_name(CELL_TOTAL_short_circuited), "short_circuited");
	cr_assert_str_eq(cell_total_name(CELL_TOTAL_trips), "trips");
	cr_assert_str_eq(cell_total_name(CELL_TOTAL_COUNT), "?");
	cr_assert_str_eq(cell_total_name((enum cell_total)-1), "?");
}

Test(cell, each_total_counts_alone)
{
	for (int i = 0; i < CELL_TOTAL_COUNT; i++) {
		for (int n = 0; n <= i; n++)
			cell_count(&cell, (enum cell_total)i);
	}
	for (int i = 0; i < CELL_TOTAL_COUNT; i++)
		cr_assert_eq(total((enum cell_total)i), (uint64_t)i + 1);
}

Test(cell, a_total_out_of_range_counts_nothing)
{
	cell_count(&cell, CELL_TOTAL_COUNT);
	cell_count(&cell, (enum cell_total)-1);
	cell_count(&cell, (enum cell_total)4096);
	for (size_t i = 0; i < sizeof(cell); i++)
		cr_assert_eq(((const char *)&cell)[i], 0);
}

Test(cell, its_layout_is_the_one_of_the_file_format)
{
	cr_assert_eq(offsetof(struct cell, circuit), 360);
	cr_assert_eq(offsetof(struct cell, override), 376);
	cr_assert_eq(offsetof(struct cell, totals), 400);
	cr_assert_eq(offsetof(struct cell, outcomes), 528);
	cr_assert_eq(offsetof(struct cell, slow), 1048);
	cr_assert_eq(offsetof(struct cell, latency), 1568);
	cr_assert_eq(offsetof(struct cell, sleep_ms), 2032);
}

static void describe(const char *host, const char *address, uint16_t port, const char *expected)
{
	struct cell_key key = { .port = port };
	char text[HOST_SIZE];

	strcpy(key.host, host);
	if (address)
		cr_assert(address_parse(address, &key.address));
	cell_key_describe(&key, text, sizeof(text));
	cr_expect_str_eq(text, expected);
}

Test(cell, a_target_is_described_without_saying_it_twice)
{
	describe("pay.internal", "10.1.2.3", 443, "pay.internal 10.1.2.3:443");
	describe("10.1.2.3", "10.1.2.3", 443, "10.1.2.3:443");
	describe("db", "2001:db8::1", 5432, "db [2001:db8::1]:5432");
	describe("2001:db8::1", "2001:db8::1", 5432, "[2001:db8::1]:5432");
	describe("pay.internal", NULL, 0, "pay.internal");
}

Test(cell, random_bytes_are_described_within_bounds)
{
	struct cell_key key;
	char text[32];

	memset(&key, 0xff, sizeof(key));
	key.address.family = 4;
	cell_key_describe(&key, text, sizeof(text));
	cr_expect_lt(strlen(text), sizeof(text));
}
