/* SPDX-License-Identifier: MIT */
#include "shim/host_entry.h"

#include <stdint.h>
#include <string.h>

#define ALIGNMENT _Alignof(char *)

static size_t list_length(char *const *list)
{
	size_t length = 0;

	while (list && list[length])
		length++;
	return length;
}

size_t host_entry_bytes(const struct hostent *entry)
{
	size_t aliases = list_length(entry->h_aliases), addresses = list_length(entry->h_addr_list);
	size_t bytes = ALIGNMENT - 1 + (aliases + 1 + addresses + 1) * sizeof(char *) +
		       addresses * (size_t)entry->h_length + strlen(entry->h_name) + 1;

	for (size_t i = 0; i < aliases; i++)
		bytes += strlen(entry->h_aliases[i]) + 1;
	return bytes;
}

/* Where the next part goes. */
static char *copy_part(char *to, const char *from, size_t size, char **ret_copy)
{
	*ret_copy = memcpy(to, from, size);
	return to + size;
}

bool host_entry_copy(const struct hostent *entry, struct hostent *ret, char *buffer, size_t size)
{
	size_t aliases = list_length(entry->h_aliases), addresses = list_length(entry->h_addr_list);
	uintptr_t misaligned = (uintptr_t)buffer % ALIGNMENT;
	size_t skipped = misaligned ? ALIGNMENT - misaligned : 0;
	char **lists, *at;

	if (host_entry_bytes(entry) - (ALIGNMENT - 1) + skipped > size)
		return false;
	lists = (char **)(void *)(buffer + skipped);
	at = (char *)(lists + aliases + 1 + addresses + 1);
	*ret = (struct hostent){
			.h_aliases = lists,
			.h_addrtype = entry->h_addrtype,
			.h_length = entry->h_length,
			.h_addr_list = lists + aliases + 1,
	};
	/* Addresses first: they are looked at as numbers. */
	for (size_t i = 0; i < addresses; i++)
		at = copy_part(at, entry->h_addr_list[i], (size_t)entry->h_length,
				&ret->h_addr_list[i]);
	for (size_t i = 0; i < aliases; i++)
		at = copy_part(at, entry->h_aliases[i], strlen(entry->h_aliases[i]) + 1,
				&ret->h_aliases[i]);
	copy_part(at, entry->h_name, strlen(entry->h_name) + 1, &ret->h_name);
	ret->h_addr_list[addresses] = NULL;
	ret->h_aliases[aliases] = NULL;
	return true;
}
