/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/answers.h"

#define MINUTE 60000000000ull

TestSuite(answers, .timeout = 60);

static struct question question_of(
		const char *host, const char *service, const struct addrinfo *hints)
{
	return (struct question){QUESTION_LIST, host, service, hints, 0};
}

static void compare(const struct addrinfo *copy, const struct addrinfo *list)
{
	for (; list; list = list->ai_next, copy = copy->ai_next) {
		cr_assert_not_null(copy);
		cr_assert_eq(copy->ai_flags, list->ai_flags);
		cr_assert_eq(copy->ai_family, list->ai_family);
		cr_assert_eq(copy->ai_socktype, list->ai_socktype);
		cr_assert_eq(copy->ai_protocol, list->ai_protocol);
		cr_assert_eq(copy->ai_addrlen, list->ai_addrlen);
		cr_assert_eq(memcmp(copy->ai_addr, list->ai_addr, list->ai_addrlen), 0);
		if (list->ai_canonname)
			cr_assert_str_eq(copy->ai_canonname, list->ai_canonname);
		else
			cr_assert_null(copy->ai_canonname);
	}
	cr_assert_null(copy);
}

/* libc's list comes back as it was, in memory that freeaddrinfo() frees. */
static void round_trip(const char *host, const char *service, const struct addrinfo *hints)
{
	struct question question = question_of(host, service, hints);
	struct addrinfo *list, *copy;

	if (getaddrinfo(host, service, hints, &list))
		return;
	answers_keep_list(&question, list, MINUTE);
	errno = EDOM;
	copy = answers_list(&question, MINUTE, 2 * MINUTE);
	cr_assert_eq(errno, EDOM);
	compare(copy, list);
	freeaddrinfo(copy);
	freeaddrinfo(list);
}

Test(answers, a_list_is_what_libc_gave_in_every_field)
{
	static const int flags[] = {0, AI_CANONNAME, AI_PASSIVE, AI_V4MAPPED | AI_ALL,
			AI_NUMERICSERV | AI_CANONNAME};
	static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6};
	static const int types[] = {0, SOCK_STREAM, SOCK_DGRAM, SOCK_RAW};
	static const char *const hosts[] = {"127.0.0.1", "::1", "localhost", "fe80::1%lo"};

	for (size_t i = 0; i < 5 * 3 * 4 * 4; i++) {
		struct addrinfo hints = {.ai_flags = flags[i % 5],
				.ai_family = families[i / 5 % 3],
				.ai_socktype = types[i / 15 % 4]};

		round_trip(hosts[i / 60], "80", &hints);
		round_trip(hosts[i / 60], NULL, &hints);
	}
	round_trip("localhost", NULL, NULL);
}

/* A list of `count` addresses, in the test's own memory. */
static struct addrinfo *list_of(size_t count, const char *name)
{
	struct addrinfo *items = calloc(count, sizeof(*items));
	struct sockaddr_in *addresses = calloc(count, sizeof(*addresses));

	for (size_t i = 0; i < count; i++) {
		addresses[i] = (struct sockaddr_in){.sin_family = AF_INET,
				.sin_port = htons((uint16_t)i),
				.sin_addr.s_addr = htonl(0x0a000000 + i)};
		items[i] = (struct addrinfo){.ai_family = AF_INET,
				.ai_socktype = 5,
				.ai_protocol = (int)i,
				.ai_addrlen = sizeof(addresses[i]),
				.ai_addr = (struct sockaddr *)&addresses[i],
				.ai_next = i + 1 < count ? &items[i + 1] : NULL};
	}
	items[0].ai_canonname = (char *)name;
	return items;
}

Test(answers, what_no_hints_could_ask_for_comes_back_too)
{
	struct question question = question_of("many.test", NULL, NULL);
	struct addrinfo *list = list_of(100, "canonical.test"), *copy;

	answers_keep_list(&question, list, 0);
	copy = answers_list(&question, MINUTE, 1);
	compare(copy, list);
	freeaddrinfo(copy);
}

static bool is_kept(const char *host, uint64_t max_age_ns, uint64_t now_ns)
{
	struct question question = question_of(host, NULL, NULL);
	struct addrinfo *list = answers_list(&question, max_age_ns, now_ns);

	if (list)
		freeaddrinfo(list);
	return list;
}

static void keep(const char *host, size_t count, uint64_t now_ns)
{
	struct question question = question_of(host, NULL, NULL);

	answers_keep_list(&question, list_of(count, NULL), now_ns);
}

Test(answers, an_answer_is_as_old_as_it_may_be)
{
	keep("a.test", 1, 100);
	cr_assert(is_kept("a.test", 50, 150));
	cr_assert_not(is_kept("a.test", 50, 151));
	cr_assert_not(is_kept("b.test", 50, 100));
	keep("a.test", 1, 151);
	cr_assert(is_kept("a.test", 50, 201));
}

Test(answers, of_too_many_the_one_asked_for_longest_ago_goes)
{
	char host[32];

	for (int i = 0; i < 256; i++) {
		snprintf(host, sizeof(host), "%d.test", i);
		keep(host, 1, 0);
	}
	cr_assert(is_kept("0.test", 1, 0));
	keep("new.test", 1, 0);
	cr_assert(is_kept("0.test", 1, 0));
	cr_assert(is_kept("new.test", 1, 0));
	cr_assert_not(is_kept("1.test", 1, 0));
	cr_assert(is_kept("2.test", 1, 0));
}

Test(answers, memory_is_bounded)
{
	char host[32];
	size_t before = 0;

	/* 10 KB each: far fewer than 256 fit. */
	for (int i = 0; i < 200; i++) {
		struct question question = question_of(host, NULL, NULL);
		struct addrinfo *list = list_of(200, NULL);

		snprintf(host, sizeof(host), "%d.test", i);
		if (i == 100)
			before = mallinfo2().uordblks;
		answers_keep_list(&question, list, 0);
		if (i >= 100)
			before += malloc_usable_size(list) + malloc_usable_size(list->ai_addr) + 16;
	}
	cr_assert_leq(mallinfo2().uordblks, before + 1024);
	cr_assert(is_kept("199.test", 1, 0));
	cr_assert_not(is_kept("150.test", 1, 0));
}

Test(answers, one_out_of_all_proportion_is_not_kept)
{
	keep("huge.test", 1000, 0);
	cr_assert_not(is_kept("huge.test", 1, 0));
}

static char address[] = {10, 1, 2, 3};
static char *addresses[] = {address, NULL};
static char *aliases[] = {"alias.test", NULL};
static struct hostent entry = {"host.test", aliases, AF_INET, 4, addresses};

Test(answers, an_entry_comes_into_the_callers_buffer)
{
	struct question question = {.kind = QUESTION_HOST, .host = "host.test"};
	struct question other = {
			.kind = QUESTION_HOST_OF_FAMILY, .host = "host.test", .family = AF_INET};
	struct hostent copy = {.h_name = NULL};
	char buffer[256];

	answers_keep_entry(&question, &entry, 0);
	cr_assert_eq(answers_entry(&other, 1, 0, &copy, buffer, sizeof(buffer)), ANSWERS_NONE);
	cr_assert_eq(answers_entry(&question, 1, 0, &copy, buffer, 16), ANSWERS_TOO_LARGE);
	cr_assert_null(copy.h_name);
	cr_assert_eq(answers_entry(&question, 1, 0, &copy, buffer, sizeof(buffer)), ANSWERS_FOUND);
	cr_assert_str_eq(copy.h_name, "host.test");
	cr_assert_str_eq(copy.h_aliases[0], "alias.test");
	cr_assert_eq(memcmp(copy.h_addr_list[0], address, 4), 0);
	cr_assert(copy.h_name >= buffer && copy.h_name < buffer + sizeof(buffer));
}

Test(answers, a_list_and_an_entry_of_one_name_are_two_answers)
{
	struct question question = {.kind = QUESTION_HOST, .host = "both.test"};
	struct hostent copy;
	char buffer[256];

	keep("both.test", 1, 0);
	answers_keep_entry(&question, &entry, 0);
	cr_assert(is_kept("both.test", 1, 0));
	cr_assert_eq(answers_entry(&question, 1, 0, &copy, buffer, sizeof(buffer)), ANSWERS_FOUND);
}

static void *keep_and_get(void *number)
{
	char host[32];

	for (int i = 0; i < 2000; i++) {
		snprintf(host, sizeof(host), "%d.test", (i * 7 + *(int *)number) % 300);
		keep(host, 1 + (size_t)i % 5, 0);
		is_kept(host, 1, 0);
	}
	return NULL;
}

Test(answers, threads_may_keep_and_get_at_once)
{
	pthread_t threads[4];
	int numbers[4];

	for (int i = 0; i < 4; i++) {
		numbers[i] = i;
		cr_assert_eq(pthread_create(&threads[i], NULL, keep_and_get, &numbers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

Test(answers, a_forked_child_keeps_what_its_parent_knew)
{
	keep("a.test", 1, 0);
	answers_forked();
	cr_assert(is_kept("a.test", 1, 0));
}
