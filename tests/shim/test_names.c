/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shim/names.h"

static void start(void)
{
	cr_assert(names_start());
}

TestSuite(names, .init = start);

static struct address address_numbered(uint32_t number)
{
	uint8_t bytes[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };

	return address_from_v4(bytes);
}

static void look_up(const char *host, struct address address)
{
	names_looked_up(host);
	names_learn(host, &address, true);
}

static const char *found(struct address address)
{
	static _Thread_local char host[HOST_SIZE];

	return names_find(&address, host) ? host : NULL;
}

Test(names, an_unknown_address_has_no_name)
{
	char host[HOST_SIZE] = "left over";
	struct address address = address_numbered(1);

	cr_assert_not(names_find(&address, host));
	cr_assert_str_eq(host, "");
}

Test(names_before_start, nothing_is_learnt)
{
	look_up("db.internal", address_numbered(1));
	cr_assert_null(found(address_numbered(1)));
}

Test(names, started_again_they_are_kept)
{
	look_up("db.internal", address_numbered(1));
	start();
	cr_assert_str_eq(found(address_numbered(1)), "db.internal");
}

Test(names, the_name_of_each_address_is_found)
{
	look_up("db.internal", address_numbered(1));
	look_up("web.internal", address_numbered(2));
	cr_assert_str_eq(found(address_numbered(1)), "db.internal");
	cr_assert_str_eq(found(address_numbered(2)), "web.internal");
}

Test(names, ipv6_addresses_have_names)
{
	struct address address;

	cr_assert(address_parse("2001:db8::1", &address));
	look_up("six.internal", address);
	cr_assert_str_eq(found(address), "six.internal");
	cr_assert_null(found(address_numbered(1)));
}

Test(names, the_longest_name_is_kept_whole)
{
	char host[HOST_SIZE];

	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	look_up(host, address_numbered(1));
	cr_assert_str_eq(found(address_numbered(1)), host);
}

Test(names, of_two_names_on_one_address_the_threads_last_lookup_decides)
{
	look_up("one.internal", address_numbered(1));
	look_up("two.internal", address_numbered(1));
	cr_assert_str_eq(found(address_numbered(1)), "two.internal");
	look_up("one.internal", address_numbered(1));
	cr_assert_str_eq(found(address_numbered(1)), "one.internal");
}

static void *look_up_two(void *nothing)
{
	look_up("two.internal", address_numbered(1));
	return nothing;
}

static void on_another_thread(void *(*body)(void *))
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, body, NULL), 0);
	pthread_join(thread, NULL);
}

Test(names, another_threads_lookup_does_not_rename_this_threads_address)
{
	look_up("one.internal", address_numbered(1));
	on_another_thread(look_up_two);
	cr_assert_str_eq(found(address_numbered(1)), "one.internal");
}

Test(names, without_a_lookup_of_its_own_the_last_writer_decides)
{
	look_up("one.internal", address_numbered(1));
	on_another_thread(look_up_two);
	names_looked_up("elsewhere.internal");
	cr_assert_str_eq(found(address_numbered(1)), "two.internal");
}

Test(names, four_names_of_an_address_are_remembered)
{
	const char *hosts[] = { "a.internal", "b.internal", "c.internal", "d.internal" };

	for (size_t i = 0; i < 4; i++)
		look_up(hosts[i], address_numbered(1));
	for (size_t i = 0; i < 4; i++) {
		names_looked_up(hosts[i]);
		cr_assert_str_eq(found(address_numbered(1)), hosts[i]);
	}
}

Test(names, a_name_without_a_rule_hides_the_ruled_one_of_its_address)
{
	struct address address = address_numbered(1);

	look_up("ruled.internal", address);
	names_looked_up("other.internal");
	names_learn("other.internal", &address, false);
	cr_assert_str_eq(found(address), "other.internal");
}

Test(names, a_name_without_a_rule_is_not_kept_for_its_own_sake)
{
	struct address address = address_numbered(1);

	names_looked_up("other.internal");
	names_learn("other.internal", &address, false);
	cr_assert_null(found(address));
}

Test(names, of_ten_thousand_names_the_newest_are_right_and_none_is_wrong)
{
	char host[HOST_SIZE];
	const char *name;
	size_t known = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(host, sizeof(host), "host-%u.internal", i);
		look_up(host, address_numbered(i));
		cr_assert_str_eq(found(address_numbered(i)), host);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		name = found(address_numbered(i));
		if (!name)
			continue;
		known++;
		snprintf(host, sizeof(host), "host-%u.internal", i);
		cr_assert_str_eq(name, host);
	}
	cr_assert_geq(known, 1000);
	cr_assert_leq(known, 2048);
}

Test(names, a_name_in_use_outlives_ten_thousand_others)
{
	char host[HOST_SIZE];

	for (uint32_t i = 1; i < 10000; i++) {
		look_up("busy.internal", address_numbered(0));
		snprintf(host, sizeof(host), "host-%u.internal", i);
		look_up(host, address_numbered(i));
	}
	cr_assert_str_eq(found(address_numbered(0)), "busy.internal");
}

#define RACE_ADDRESSES 64
#define RACE_ROUNDS    20000

/* Every name tells its own address, so that a reader can tell a name of another address, or half a
 * name, from a right one. */
static void *race(void *argument)
{
	uintptr_t seed = (uintptr_t)argument;
	char host[HOST_SIZE];
	const char *name;
	unsigned int number, read, seen = 0;
	long wrong = 0;

	for (unsigned int i = 0; i < RACE_ROUNDS; i++) {
		number = (i * 7919u + (unsigned int)seed * 31u) % (RACE_ADDRESSES * 100);
		snprintf(host, sizeof(host), "%u.thread-%u.%0100u.internal", number,
				(unsigned int)(seed & 1), number);
		look_up(host, address_numbered(number));
		number = (number * 13) % (RACE_ADDRESSES * 100);
		name = found(address_numbered(number));
		seen += name != NULL;
		if (name && (sscanf(name, "%u.", &read) != 1 || read != number ||
					    sscanf(strchr(name, '-') + 3, "%u", &read) != 1 ||
					    read != number))
			wrong++;
	}
	return (void *)(seen ? wrong : -1);
}

Test(names, racing_threads_never_see_half_a_name_or_a_foreign_one)
{
	pthread_t threads[4];
	void *wrong;

	for (uintptr_t i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, race, (void *)i), 0);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		cr_assert_null(wrong);
	}
}
