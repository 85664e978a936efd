/* SPDX-License-Identifier: MIT */
/* struct hostent, which is an entry and a buffer that its pointers lead into. */
#ifndef SHUNT_SHIM_HOST_ENTRY_H
#define SHUNT_SHIM_HOST_ENTRY_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>

/* Where a caller of gethostbyname_r() and gethostbyname2_r() wants the answer. */
struct host_room {
	struct hostent *entry;
	char *buffer;
	size_t size;
	struct hostent **result;
	int *h_error;
};

/* What a copy needs of a buffer, however that is aligned. */
size_t host_entry_bytes(const struct hostent *entry);

/* Copies all of an entry. False: the buffer is too small, *ret is untouched. */
bool host_entry_copy(const struct hostent *entry, struct hostent *ret, char *buffer, size_t size);

#endif
