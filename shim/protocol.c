/* SPDX-License-Identifier: MIT */
#include "shim/protocol.h"

#include <string.h>

#define FIRST_SIZE 16

static const struct {
	const char *prefix;
	enum protocol protocol;
} prefixes[] = {
	{ "\x16\x03", PROTOCOL_TLS },
	{ "SSH-", PROTOCOL_BLIND },
	{ "@RSYNCD:", PROTOCOL_BLIND },
	{ "PRI * HTTP/2.0", PROTOCOL_BLIND },
};

/* The rest of `ret` is zero, which no prefix has. */
static void gather(struct bytes bytes, char ret[static FIRST_SIZE])
{
	size_t size = 0;

	memset(ret, 0, FIRST_SIZE);
	for (size_t i = 0; bytes.vectors && i < bytes.count && size < FIRST_SIZE; i++) {
		size_t length = bytes.vectors[i].iov_len;

		if (length > FIRST_SIZE - size)
			length = FIRST_SIZE - size;
		if (length > 0)
			memcpy(ret + size, bytes.vectors[i].iov_base, length);
		size += length;
	}
}

enum protocol protocol_of(struct bytes bytes)
{
	char first[FIRST_SIZE];

	gather(bytes, first);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (memcmp(first, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
			return prefixes[i].protocol;
	}
	return PROTOCOL_PLAIN;
}

bool bytes_are_empty(struct bytes bytes)
{
	for (size_t i = 0; i < bytes.count; i++) {
		if (bytes.vectors[i].iov_len > 0)
			return false;
	}
	return bytes.vectors != NULL;
}
