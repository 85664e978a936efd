/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <netdb.h>
#include <pthread.h>

#include "tests/support/sanitized.h"

int hook_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result);
struct hostent *hook_gethostbyname(const char *name);
struct hostent *hook_gethostbyname2(const char *name, int family);
int hook_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size,
		struct hostent **result, int *h_error);

#define NAME "nobody-asks-for-this.invalid"

static int lookups;

/* No test asks a resolver: what is not numeric is counted. */
static int (*numeric)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return numeric(node, service, hints, result);
	lookups++;
	return EAI_AGAIN;
}

static void begin(const char *rules)
{
	faults_open(SOCK_STREAM);
	numeric = real()->getaddrinfo;
	real()->getaddrinfo = fake_getaddrinfo;
	faults_start(rules);
}

static int look_up(const char *name)
{
	struct addrinfo *list = NULL;
	int error = hook_getaddrinfo(name, "80", NULL, &list);

	if (!error)
		freeaddrinfo(list);
	return error;
}

TestSuite(inject_name, .timeout = 60);

Test(inject_name, each_failure_is_told_as_libc_tells_it)
{
	static const struct {
		const char *rule;
		int eai, h_error, result;
	} rows[] = {
		{ "fault A = dns:" NAME " nxdomain calls=1..3\n", EAI_NONAME, HOST_NOT_FOUND, 0 },
		{ "fault B = dns:" NAME " servfail calls=4..6\n", EAI_FAIL, NO_RECOVERY, 0 },
		{ "fault C = dns:" NAME " again calls=7..9\n", EAI_AGAIN, TRY_AGAIN, EAGAIN },
		{ "fault D = dns:" NAME " nodata calls=10..12\n", EAI_NODATA, NO_DATA, 0 },
	};
	char rules[512] = "", buffer[512];
	struct hostent entry, *result;
	int h_error;

	for (size_t i = 0; i < 4; i++)
		strcat(rules, rows[i].rule);
	begin(rules);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(look_up(NAME), rows[i].eai);
		cr_expect_null(hook_gethostbyname(NAME));
		cr_expect_eq(h_errno, rows[i].h_error);
		result = &entry;
		cr_expect_eq(hook_gethostbyname_r(NAME, &entry, buffer, sizeof(buffer), &result,
				&h_error), rows[i].result);
		cr_expect_null(result);
		cr_expect_eq(h_error, rows[i].h_error);
		cr_expect_eq(injected((uint32_t)i), 3);
	}
	cr_expect_eq(lookups, 0, "no resolver was asked");
}

Test(inject_name, another_address_is_the_answer_in_every_field)
{
	struct addrinfo hints = { .ai_flags = AI_CANONNAME, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list;
	const struct sockaddr_in *address;

	begin("fault A = dns:" NAME " addr=10.1.2.3\n");
	cr_assert_eq(hook_getaddrinfo(NAME, "80", &hints, &list), 0);
	address = (const struct sockaddr_in *)list->ai_addr;
	cr_expect_eq(ntohl(address->sin_addr.s_addr), 0x0a010203);
	cr_expect_eq(ntohs(address->sin_port), 80);
	cr_expect_eq(list->ai_socktype, SOCK_DGRAM);
	cr_expect_str_eq(list->ai_canonname, NAME);
	cr_expect_null(list->ai_next);
	freeaddrinfo(list);
	hints.ai_family = AF_INET6;
	cr_expect_eq(hook_getaddrinfo(NAME, "80", &hints, &list), EAI_NODATA);
	cr_expect_eq(lookups, 0);
}

Test(inject_name, and_of_a_host_entry)
{
	struct hostent entry, *result;
	char buffer[256];
	int h_error;

	begin("fault A = dns:" NAME " addr=fd00::1\n");
	cr_expect_null(hook_gethostbyname(NAME));
	cr_expect_eq(h_errno, NO_DATA);
	result = hook_gethostbyname2(NAME, AF_INET6);
	cr_assert_not_null(result);
	cr_expect_str_eq(result->h_name, NAME);
	cr_expect_eq(result->h_length, 16);
	cr_expect_eq((unsigned char)result->h_addr_list[0][0], 0xfd);
	cr_expect_null(result->h_addr_list[1]);
	cr_expect_eq(hook_gethostbyname_r(NAME, &entry, buffer, sizeof(buffer), &result, &h_error),
			0);
	cr_expect_null(result);
}

Test(inject_name, a_buffer_that_is_too_small_is_said_to_be)
{
	struct hostent entry, *result;
	char buffer[8];
	int h_error;

	begin("fault A = dns:" NAME " addr=10.1.2.3\n");
	cr_expect_eq(hook_gethostbyname_r(NAME, &entry, buffer, sizeof(buffer), &result, &h_error),
			ERANGE);
	cr_expect_eq(h_error, NETDB_INTERNAL);
	cr_expect_null(result);
}

Test(inject_name, a_rule_added_by_hand_strikes_a_program_that_looks_up_and_no_more)
{
	begin("break B = 127.0.0.1:1\n");
	cr_expect_eq(look_up(NAME), EAI_AGAIN);
	cr_expect_eq(lookups, 1);
	fault_added("X", "dns:" NAME " nxdomain");
	cr_expect_eq(look_up(NAME), EAI_NONAME);
	cr_expect_eq(lookups, 1);
	cr_expect_eq(fault_table_clear(&runtime.segment->faults, "X", clock_now_ns()), 1);
	cr_expect_eq(look_up(NAME), EAI_AGAIN);
}

Test(inject_name, other_names_and_addresses_are_left_alone)
{
	begin("fault A = dns:" NAME " nxdomain\n");
	cr_expect_eq(look_up("other.invalid"), EAI_AGAIN);
	cr_expect_eq(lookups, 1);
	look_up("10.1.2.3");
	cr_expect_eq(injected(0), 0);
}

Test(inject_name, a_lookup_comes_late_and_is_asked_all_the_same)
{
	uint64_t began_ns;

	begin("fault A = dns:" NAME " latency=40ms\nfault B = dns:any latency=20ms\n");
	began_ns = clock_now_ns();
	cr_expect_eq(look_up(NAME), EAI_AGAIN);
	cr_expect_geq(clock_now_ns() - began_ns, 60 * MS_NS);
	cr_expect_eq(lookups, 1);
}

static void *looks_up(void *unused)
{
	(void)unused;
	look_up(NAME);
	return NULL;
}

Test(inject_name, a_thread_that_is_late_can_be_cancelled)
{
	pthread_t thread;
	void *result;

	SKIP_IF_SANITIZED("it takes the stack of a cancelled thread for overrun");
	begin("fault A = dns:" NAME " latency=1h\n");
	cr_assert_eq(pthread_create(&thread, NULL, looks_up, NULL), 0);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_expect_eq(result, PTHREAD_CANCELED);
}

Test(inject_name, the_circuit_of_a_name_sees_it)
{
	begin("break B = " NAME " volume=2 sleep=1h\nfault A = dns:" NAME " servfail\n");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(look_up(NAME), EAI_FAIL);
	cr_expect_eq(look_up(NAME), EAI_AGAIN, "refused by the open circuit");
	cr_expect_eq(injected(0), 2);
}
