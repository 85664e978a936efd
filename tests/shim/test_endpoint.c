/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "shim/endpoint.h"

static struct sockaddr_in v4(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static struct sockaddr_in6 v6(const char *text, uint16_t port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	inet_pton(AF_INET6, text, &address.sin6_addr);
	return address;
}

static bool reads(const void *address, socklen_t length, const char *expected, uint16_t port)
{
	struct address read, wanted;
	uint16_t read_port;

	if (!endpoint_read(address, length, &read, &read_port))
		return false;
	cr_assert(address_parse(expected, &wanted));
	return !memcmp(&read, &wanted, sizeof(read)) && read_port == port;
}

static bool refuses(const void *address, socklen_t length)
{
	struct address read;
	uint16_t port;

	return !endpoint_read(address, length, &read, &port);
}

Test(endpoint, ipv4_and_ipv6_are_read)
{
	struct sockaddr_in four = v4("10.1.2.3", 5432);
	struct sockaddr_in6 six = v6("2001:db8::1", 443);

	cr_assert(reads(&four, sizeof(four), "10.1.2.3", 5432));
	cr_assert(reads(&six, sizeof(six), "2001:db8::1", 443));
}

Test(endpoint, a_mapped_address_is_the_ipv4_address)
{
	struct sockaddr_in6 mapped = v6("::ffff:127.0.0.1", 80);

	cr_assert(reads(&mapped, sizeof(mapped), "127.0.0.1", 80));
	mapped.sin6_scope_id = 7;
	cr_assert(reads(&mapped, sizeof(mapped), "127.0.0.1", 80));
}

Test(endpoint, what_the_kernel_takes_without_a_scope_is_read)
{
	struct sockaddr_in6 six = v6("2001:db8::1", 443);

	cr_assert(reads(&six, 24, "2001:db8::1", 443));
}

Test(endpoint, every_shorter_length_is_the_kernels_to_refuse)
{
	struct sockaddr_in four = v4("10.1.2.3", 1);
	struct sockaddr_in6 six = v6("2001:db8::1", 1);

	for (socklen_t length = 0; length < sizeof(four); length++)
		cr_assert(refuses(&four, length), "%u", length);
	for (socklen_t length = 0; length < 24; length++)
		cr_assert(refuses(&six, length), "%u", length);
	cr_assert(refuses(&four, (socklen_t)-1));
}

Test(endpoint, a_pointer_that_cannot_be_memory_is_not_followed)
{
	cr_assert(refuses(NULL, 16));
	cr_assert(refuses((void *)1, 16));
	cr_assert(refuses((void *)0xffff, 16));
	cr_assert(refuses((void *)-1, 16));
	cr_assert(refuses((void *)(UINTPTR_MAX - 15), 16));
	cr_assert(refuses((void *)(1ull << 63), 16));
	cr_assert(refuses((void *)0xffffffff81000000ull, 28));
}

Test(endpoint, other_families_pass)
{
	struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	struct sockaddr_in none = v4("10.1.2.3", 1);

	none.sin_family = AF_UNSPEC;
	cr_assert(refuses(&local, sizeof(local)));
	cr_assert(refuses(&none, sizeof(none)));
}

Test(endpoint, an_unaligned_address_is_read)
{
	struct sockaddr_in6 six = v6("2001:db8::1", 443);
	char storage[sizeof(six) + 1];

	memcpy(storage + 1, &six, sizeof(six));
	cr_assert(reads(storage + 1, sizeof(six), "2001:db8::1", 443));
}
