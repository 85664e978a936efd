/* SPDX-License-Identifier: MIT */
#include "core/order.h"

#include <stdbool.h>
#include <string.h>

/* In small pieces: an item on the stack would be a large frame. */
static void swap(char *a, char *b, size_t size)
{
	char spare[64];

	for (size_t done = 0; done < size; done += sizeof(spare)) {
		size_t left = size - done;
		size_t piece = left < sizeof(spare) ? left : sizeof(spare);

		memcpy(spare, a + done, piece);
		memcpy(a + done, b + done, piece);
		memcpy(b + done, spare, piece);
	}
}

void order_place(void *items, size_t size, size_t last, order_compare *compare)
{
	for (char *at = (char *)items + last * size; at > (char *)items; at -= size) {
		if (compare(at, at - size) >= 0)
			return;
		swap(at, at - size, size);
	}
}

/* Lets the item at `root` sink to where no child of it in the heap comes behind it. */
static void sink(char *items, size_t size, size_t root, size_t count, order_compare *compare)
{
	for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
		if (child + 1 < count &&
				compare(items + child * size, items + (child + 1) * size) < 0)
			child++;
		if (compare(items + root * size, items + child * size) >= 0)
			return;
		swap(items + root * size, items + child * size, size);
		root = child;
	}
}

void order_sort(void *items, size_t size, size_t count, order_compare *compare)
{
	for (size_t root = count / 2; root > 0; root--)
		sink(items, size, root - 1, count, compare);
	for (size_t end = count; end > 1; end--) {
		swap(items, (char *)items + (end - 1) * size, size);
		sink(items, size, 0, end - 1, compare);
	}
}
