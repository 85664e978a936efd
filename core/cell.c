/* SPDX-License-Identifier: MIT */
#include "core/cell.h"

#include <string.h>

#include "core/format.h"

static_assert(CELL_TOTAL_COUNT <= sizeof((struct cell){0}.totals) / sizeof(uint64_t),
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

void cell_key_describe(const struct cell_key *key, char *ret, size_t size)
{
	char host[HOST_SIZE], address[64];
	bool is_v6 = key->address.family == 6;

	memcpy(host, key->host, sizeof(host));
	host[sizeof(host) - 1] = '\0';
	if (key->address.family != 4 && !is_v6) {
		text_copy(ret, size, host[0] != '\0' ? host : "any");
		return;
	}
	address_format(&key->address, address);
	if (!strcmp(host, address))
		host[0] = '\0';
	text_format(ret, size, "%s%s%s%s%s:%u", host, host[0] == '\0' ? "" : " ", is_v6 ? "[" : "",
			address, is_v6 ? "]" : "", (unsigned int)key->port);
}
