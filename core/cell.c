/* SPDX-License-Identifier: MIT */
#include "core/cell.h"

static_assert(CELL_TOTAL_COUNT <= sizeof((struct cell){ 0 }.totals) / sizeof(uint64_t),
	"every total has a place in the cell");

static const char *const total_names[CELL_TOTAL_COUNT] = {
#define TOTAL(name) #name,
	CELL_TOTALS(TOTAL)
#undef TOTAL
};

const char *cell_total_name(enum cell_total total)
{
	return (unsigned int)total < CELL_TOTAL_COUNT ? total_names[total] : "?";
}
