/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "shim/host_entry.h"

TestSuite(host_entry, .timeout = 10);

static char first[] = {10, 1, 2, 3}, second[] = {10, 1, 2, 4};
static char *addresses[] = {first, second, NULL};
static char *aliases[] = {"www", "a.much.longer.alias.test", NULL};
static char *none[] = {NULL};

static const struct hostent full = {"host.test", aliases, AF_INET, 4, addresses};
static const struct hostent bare = {"", none, AF_INET, 4, none};

static void compare(const struct hostent *copy, const struct hostent *entry)
{
	size_t i;

	cr_assert_eq((uintptr_t)copy->h_aliases % _Alignof(char *), 0);
	cr_assert_str_eq(copy->h_name, entry->h_name);
	cr_assert_eq(copy->h_addrtype, entry->h_addrtype);
	cr_assert_eq(copy->h_length, entry->h_length);
	for (i = 0; entry->h_aliases[i]; i++)
		cr_assert_str_eq(copy->h_aliases[i], entry->h_aliases[i]);
	cr_assert_null(copy->h_aliases[i]);
	for (i = 0; entry->h_addr_list[i]; i++)
		cr_assert_eq(memcmp(copy->h_addr_list[i], entry->h_addr_list[i], 4), 0);
	cr_assert_null(copy->h_addr_list[i]);
}

/* At every alignment a buffer of host_entry_bytes() is enough, and nothing beyond what was given is
 * written to. */
static void copy_everywhere(const struct hostent *entry)
{
	char buffer[512];
	struct hostent copy;
	size_t needed = host_entry_bytes(entry);

	for (size_t skip = 0; skip < 16; skip++) {
		for (size_t size = 0; size <= needed; size++) {
			memset(buffer, 'x', sizeof(buffer));
			copy.h_name = NULL;
			if (host_entry_copy(entry, &copy, buffer + skip, size))
				compare(&copy, entry);
			else
				cr_assert_null(copy.h_name);
			for (size_t i = skip + size; i < sizeof(buffer); i++)
				cr_assert_eq(buffer[i], 'x');
		}
		cr_assert_not_null(copy.h_name);
	}
}

Test(host_entry, all_of_it_is_copied_or_nothing)
{
	copy_everywhere(&full);
	copy_everywhere(&bare);
}

Test(host_entry, missing_lists_are_empty_ones)
{
	struct hostent entry = {"host.test", NULL, AF_INET6, 16, NULL}, copy;
	char buffer[256];

	cr_assert(host_entry_copy(&entry, &copy, buffer, sizeof(buffer)));
	cr_assert_null(copy.h_aliases[0]);
	cr_assert_null(copy.h_addr_list[0]);
}
