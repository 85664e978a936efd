/* SPDX-License-Identifier: MIT */
#include "shim/res_state.h"

#include <errno.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>

/* Set by libc itself, when a server turns out to mind. */
#define OF_LIBC ((unsigned long)(RES_SNGLKUP | RES_SNGLKUPREOP))

#define SEARCH_TEXT_MAX 256

typedef const struct __res_state *state_t;

static bool search_equals(state_t one, state_t other)
{
	for (size_t i = 0; i < MAXDNSRCH; i++) {
		const char *domain = one->dnsrch[i], *expected = other->dnsrch[i];

		if (!domain || !expected)
			return domain == expected;
		if (strncmp(domain, expected, SEARCH_TEXT_MAX) != 0)
			return false;
	}
	return true;
}

static bool is_same_v4(const struct sockaddr_in6 *copy, const struct sockaddr_in *v4)
{
	struct sockaddr_in copied;

	memcpy(&copied, copy, sizeof(copied));
	return copied.sin_family == AF_INET && v4->sin_family == AF_INET &&
	       copied.sin_port == v4->sin_port &&
	       copied.sin_addr.s_addr == v4->sin_addr.s_addr;
}

static bool server_equals(state_t one, state_t other, size_t i)
{
	const struct sockaddr_in6 *v6 = one->_u._ext.nsaddrs[i];
	const struct sockaddr_in6 *expected = other->_u._ext.nsaddrs[i];
	const struct sockaddr_in *v4 = &one->nsaddr_list[i], *expected_v4 = &other->nsaddr_list[i];

	/* No family: it is an IPv6 server, and the rest is what was there before. */
	if (v4->sin_family != expected_v4->sin_family ||
			(v4->sin_family && memcmp(v4, expected_v4, sizeof(*v4)) != 0))
		return false;
	/* Libc's first query puts a copy of each IPv4 server there. */
	if (!v6 || !expected)
		return v6 == expected || is_same_v4(v6 ? v6 : expected, v4);
	return memcmp(v6, expected, sizeof(*v6)) == 0;
}

static bool servers_equal(state_t one, state_t other)
{
	if (one->nscount != other->nscount)
		return false;
	for (int i = 0; i < one->nscount && i < MAXNS; i++) {
		if (!server_equals(one, other, (size_t)i))
			return false;
	}
	return true;
}

static bool sorting_equals(state_t one, state_t other)
{
	size_t count = one->nsort < MAXRESOLVSORT ? one->nsort : MAXRESOLVSORT;

	return one->nsort == other->nsort &&
	       memcmp(one->sort_list, other->sort_list, count * sizeof(one->sort_list[0])) == 0;
}

static bool state_equals(state_t one, state_t other)
{
	return (one->options & ~OF_LIBC) == (other->options & ~OF_LIBC) &&
	       one->retrans == other->retrans && one->retry == other->retry &&
	       one->ndots == other->ndots && servers_equal(one, other) &&
	       search_equals(one, other) && sorting_equals(one, other);
}

bool res_state_is_changed(void)
{
	state_t mine = &_res;
	struct __res_state fresh = {0};
	bool is_changed;
	int kept = errno;

	/* Nothing that was set before the first lookup lasts. */
	if (!(mine->options & RES_INIT))
		return false;
	if (res_ninit(&fresh) != 0) {
		errno = kept;
		return true;
	}
	is_changed = !state_equals(mine, &fresh);
	res_nclose(&fresh);
	errno = kept;
	return is_changed;
}

void res_state_forget(void)
{
	_res = (struct __res_state){0};
}
