/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/order.h"

/* Larger than the pieces in which items are moved. */
struct item {
	int rank, order;
	char rest[200];
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static struct item item(int rank, int order)
{
	struct item item = { rank, order, "" };

	memset(item.rest, rank, sizeof(item.rest));
	return item;
}

static bool is_whole(const struct item *at)
{
	for (size_t i = 0; i < sizeof(at->rest); i++) {
		if (at->rest[i] != (char)at->rank)
			return false;
	}
	return true;
}

Test(order, the_last_goes_where_it_belongs_behind_its_equals)
{
	static const int ranks[] = { 5, 3, 9, 3, 1, 9, 5 };
	struct item items[7];

	for (int i = 0; i < 7; i++) {
		items[i] = item(ranks[i], i);
		order_place(items, sizeof(items[0]), (size_t)i, compare);
	}
	for (int i = 0; i < 7; i++) {
		cr_expect(is_whole(&items[i]));
		if (i == 0)
			continue;
		cr_expect_leq(items[i - 1].rank, items[i].rank);
		cr_expect(items[i - 1].rank < items[i].rank ||
				items[i - 1].order < items[i].order);
	}
}

Test(order, any_number_of_items_is_sorted)
{
	static struct item items[100];
	uint32_t state = 1;

	for (size_t count = 0; count <= 100; count++) {
		int sum = 0;

		for (size_t i = 0; i < count; i++) {
			state = state * 1664525 + 1013904223;
			items[i] = item((int)(state >> 26), 0);
			sum += items[i].rank;
		}
		order_sort(items, sizeof(items[0]), count, compare);
		for (size_t i = 0; i < count; i++) {
			sum -= items[i].rank;
			cr_expect(is_whole(&items[i]));
			cr_expect(i == 0 || items[i - 1].rank <= items[i].rank, "%zu of %zu", i,
					count);
		}
		cr_expect_eq(sum, 0);
	}
}
