/* SPDX-License-Identifier: MIT */
/* Keeps arrays in order where qsort() may not be called: it can allocate. Small frames. */
#ifndef SHUNT_CORE_ORDER_H
#define SHUNT_CORE_ORDER_H

#include <stddef.h>

typedef int order_compare(const void *a, const void *b);

/* Moves the item at `last` of `size` bytes to where it belongs among those before it, which are in
 * order; behind its equals. */
void order_place(void *items, size_t size, size_t last, order_compare *compare);

/* In place, in n log n steps; equals in any order. */
void order_sort(void *items, size_t size, size_t count, order_compare *compare);

#endif
