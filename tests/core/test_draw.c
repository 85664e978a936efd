/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/draw.h"

#define DRAWS 100000u

static uint64_t number(uint64_t seed, uint64_t rule, uint32_t connection, uint32_t call,
		uint32_t index)
{
	return draw_number(&(struct draw){ seed, rule, connection, call }, index);
}

/* A report of today is replayed and compared next year. */
Test(draw, a_seed_gives_the_same_numbers_for_ever)
{
	cr_expect_eq(number(0, 0, 0, 0, 0), 0x2130748aaac80268u, "%llx",
			(unsigned long long)number(0, 0, 0, 0, 0));
	cr_expect_eq(number(7, 0x123456789abcdef, 3, 2, 1), 0x81688bcd75340726u, "%llx",
			(unsigned long long)number(7, 0x123456789abcdef, 3, 2, 1));
}

Test(draw, whatever_differs_gives_another_number)
{
	uint64_t one = number(1, 2, 3, 4, 5);

	cr_expect_eq(number(1, 2, 3, 4, 5), one);
	cr_expect_neq(number(2, 2, 3, 4, 5), one);
	cr_expect_neq(number(1, 3, 3, 4, 5), one);
	cr_expect_neq(number(1, 2, 4, 4, 5), one);
	cr_expect_neq(number(1, 2, 3, 5, 5), one);
	cr_expect_neq(number(1, 2, 3, 4, 6), one);
	/* Sums and swaps are not all that counts. */
	cr_expect_neq(number(2, 1, 3, 4, 5), one);
	cr_expect_neq(number(1, 2, 4, 3, 5), one);
	cr_expect_neq(number(1, 2, 2, 5, 5), one);
}

Test(draw, numbers_of_neighbours_are_even)
{
	uint32_t counts[10] = { 0 }, bits[64] = { 0 };

	for (uint32_t i = 0; i < DRAWS; i++) {
		uint64_t value = number(42, 99, i / 10, i % 10, 0);

		counts[draw_below(value, 10)]++;
		for (int bit = 0; bit < 64; bit++)
			bits[bit] += value >> bit & 1;
	}
	/* Five standard deviations; the numbers are always the same. */
	for (int i = 0; i < 10; i++)
		cr_expect(counts[i] > 9500 && counts[i] < 10500, "%d: %u", i, counts[i]);
	for (int i = 0; i < 64; i++)
		cr_expect(bits[i] > 49200 && bits[i] < 50800, "%d: %u", i, bits[i]);
}

Test(draw, a_number_below_a_limit_is_below_it)
{
	cr_expect_eq(draw_below(UINT64_MAX, 1), 0);
	cr_expect_eq(draw_below(UINT64_MAX, 0), 0);
	cr_expect_eq(draw_below(UINT64_MAX, 7), 6);
	cr_expect_eq(draw_below(0, UINT64_MAX), 0);
	cr_expect_eq(draw_below(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
}

Test(draw, a_normal_deviate_is_cut_at_three_sigma)
{
	cr_expect_eq(draw_normal(0), 0);
	cr_expect_eq(draw_normal(UINT64_MAX >> 1), 3 * 65536 - 1);
	cr_expect_eq(draw_normal(UINT64_MAX), -(3 * 65536 - 1));
	for (uint64_t step = 1; step < 4096; step++)
		cr_expect_geq(draw_normal(step << 51), draw_normal((step - 1) << 51));
}

Test(draw, normal_deviates_have_the_shape)
{
	static const struct {
		int32_t within; /* 65536ths of sigma */
		uint32_t of_100000;
	} shape[] = { { 32768, 38395 }, { 65536, 68454 }, { 131072, 95708 }, { 196608, 100000 } };
	int64_t sum = 0;

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		uint32_t count = 0;

		for (uint32_t j = 0; j < DRAWS; j++) {
			int32_t deviate = draw_normal(number(1, 1, j, 0, 0));

			count += deviate > -shape[i].within && deviate < shape[i].within;
			sum += i ? 0 : deviate;
		}
		cr_expect(count + 800 > shape[i].of_100000 && count < shape[i].of_100000 + 800,
				"%d: %u", shape[i].within, count);
	}
	/* The mean is 0, give or take a hundredth of sigma. */
	cr_expect(sum < 655ll * DRAWS && sum > -655ll * DRAWS, "%lld", (long long)sum);
}
