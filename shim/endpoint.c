/* SPDX-License-Identifier: MIT */
#include "shim/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* What the kernel takes for AF_INET6: sin6_scope_id may be missing. */
#define SIN6_LEN_RFC2133 24

/* The first page that a user may map, as most systems set it, and the first address past all user
 * memory; what lies outside is answered by the kernel (EFAULT), not by a crash of ours. */
#define USER_FIRST 0x10000ull
#if defined(__x86_64__)
#define USER_END (1ull << 47)
#else
#define USER_END (1ull << 52)
#endif

static bool may_be_user_memory(const void *pointer, size_t length)
{
	uintptr_t first = (uintptr_t)pointer;

	return first >= USER_FIRST && first < USER_END && length <= USER_END - first;
}

sa_family_t endpoint_family(const struct sockaddr *address)
{
	sa_family_t family;

	memcpy(&family, (const char *)address + offsetof(struct sockaddr, sa_family),
			sizeof(family));
	return family;
}

bool endpoint_read(const struct sockaddr *address, socklen_t length, struct address *ret_address,
		uint16_t *ret_port)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6 = { 0 };
	sa_family_t family;

	if (length < sizeof(v4) || length > sizeof(struct sockaddr_storage) ||
			!may_be_user_memory(address, length))
		return false;
	family = endpoint_family(address);
	if (family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		address_read_v4(&v4.sin_addr, ret_address);
		*ret_port = ntohs(v4.sin_port);
		return true;
	}
	if (family == AF_INET6 && length >= SIN6_LEN_RFC2133) {
		memcpy(&v6, address, SIN6_LEN_RFC2133);
		*ret_address = address_from_v6(&v6.sin6_addr);
		*ret_port = ntohs(v6.sin6_port);
		return true;
	}
	return false;
}

bool endpoint_is_disconnect(const struct sockaddr *address, socklen_t length)
{
	return length >= sizeof(sa_family_t) && may_be_user_memory(address, sizeof(sa_family_t)) &&
			endpoint_family(address) == AF_UNSPEC;
}
