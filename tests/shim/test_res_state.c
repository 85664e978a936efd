/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>

#include "shim/res_state.h"

TestSuite(res_state, .timeout = 30);

Test(res_state, a_thread_that_looked_nothing_up_has_changed_nothing)
{
	errno = EDOM;
	cr_assert_not(res_state_is_changed());
	cr_assert_eq(errno, EDOM);
	/* What is set before the first lookup is overwritten by it. */
	_res.retrans = 1;
	cr_assert_not(res_state_is_changed());
}

Test(res_state, libcs_own_lookups_change_nothing)
{
	struct addrinfo *list;

	if (getaddrinfo("localhost", NULL, NULL, &list) == 0)
		freeaddrinfo(list);
	gethostbyname("localhost");
	cr_assert_not(res_state_is_changed());
}

Test(res_state, nor_does_res_init)
{
	cr_assert_eq(res_init(), 0);
	errno = EDOM;
	cr_assert_not(res_state_is_changed());
	cr_assert_eq(errno, EDOM);
	_res.options |= RES_SNGLKUP;
	cr_assert_not(res_state_is_changed());
}

/* What libc's first query leaves: where it finds nothing it copies each IPv4 server. */
static void copy_servers(void)
{
	for (int i = 0; i < _res.nscount; i++) {
		struct sockaddr_in6 *copy = _res._u._ext.nsaddrs[i];

		if (_res.nsaddr_list[i].sin_family != AF_INET)
			continue;
		if (!copy)
			copy = calloc(1, sizeof(*copy));
		memcpy(copy, &_res.nsaddr_list[i], sizeof(_res.nsaddr_list[i]));
		_res._u._ext.nsaddrs[i] = copy;
	}
}

Test(res_state, nor_does_a_query_of_libcs_own)
{
	cr_assert_eq(res_init(), 0);
	copy_servers();
	cr_assert_not(res_state_is_changed());
}

static void set_options(void)
{
	_res.options |= RES_USE_DNSSEC;
}

static void set_no_search(void)
{
	_res.options &= ~(unsigned long)RES_DNSRCH;
}

static void set_time(void)
{
	_res.retrans = 29;
}

static void set_tries(void)
{
	_res.retry = 7;
}

static void set_dots(void)
{
	_res.ndots = 9;
}

static void set_server(void)
{
	_res.nscount = 1;
	_res.nsaddr_list[0] = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = htons(5353),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* In libc's copy alone, from which it reads. */
static void set_server_copy(void)
{
	struct sockaddr_in server = {.sin_family = AF_INET,
			.sin_port = htons(5353),
			.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	copy_servers();
	if (!_res._u._ext.nsaddrs[0])
		_res._u._ext.nsaddrs[0] = calloc(1, sizeof(struct sockaddr_in6));
	memcpy(_res._u._ext.nsaddrs[0], &server, sizeof(server));
}

static void set_more_servers(void)
{
	_res.nscount = _res.nscount == 2 ? 3 : 2;
}

static void set_search(void)
{
	static char domain[] = "changed.test";

	_res.dnsrch[0] = domain;
	_res.dnsrch[1] = NULL;
}

static void set_sorting(void)
{
	_res.nsort = 1;
	_res.sort_list[0].mask = 77;
}

static void *change_on_own_thread(void *change)
{
	/* glibc leaves a thread what an ended one had. */
	memset(&_res, 0, sizeof(_res));
	cr_assert_eq(res_init(), 0);
	cr_assert_not(res_state_is_changed());
	(*(void (**)(void))change)();
	cr_assert(res_state_is_changed());
	return NULL;
}

Test(res_state, every_field_that_a_program_may_set_counts)
{
	static void (*changes[])(void) = {set_options, set_no_search, set_time, set_tries, set_dots,
			set_server, set_server_copy, set_more_servers, set_search, set_sorting};
	pthread_t thread;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		cr_assert_eq(pthread_create(&thread, NULL, change_on_own_thread, &changes[i]), 0);
		pthread_join(thread, NULL);
	}
	cr_assert_not(res_state_is_changed());
}

Test(res_state, what_was_left_to_a_thread_is_forgotten)
{
	cr_assert_eq(res_init(), 0);
	_res._u._ext.nssocks[0] = 12345;
	res_state_forget();
	cr_assert_eq(_res.options, 0);
	cr_assert_not(res_state_is_changed());
	cr_assert_eq(res_init(), 0);
	cr_assert_eq(_res._u._ext.nssocks[0], -1);
	cr_assert_not(res_state_is_changed());
}
