/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/clock.h"
#include "shim/own_call.h"
#include "shim/real.h"
#include "shim/request.h"

#define NEVER_NS 3600000000000ull

TestSuite(request, .timeout = 60);

static const struct question question = {QUESTION_LIST, "127.0.0.1", "80", NULL, 0};

static struct request *make(uint64_t timeout_ns)
{
	struct request *request = request_make(&question);

	request->deadline_ns = clock_now_ns() + timeout_ns;
	return request;
}

static void *ask(void *request)
{
	request_ask(request);
	request_publish(request);
	return NULL;
}

Test(request, who_waits_has_the_answer)
{
	struct request *request = make(NEVER_NS);
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, ask, request), 0);
	request_wait(request);
	cr_assert(request_is_done(request));
	cr_assert_not(request_leave(request));
	cr_assert_eq(request->answer.result, 0);
	cr_assert_not_null(request->answer.list);
	request_free(request);
	pthread_join(thread, NULL);
}

Test(request, who_is_late_has_none_and_who_asked_frees_it)
{
	struct request *request = make(1000);

	request_wait(request);
	cr_assert_not(request_is_done(request));
	cr_assert(request_leave(request));
	ask(request);
}

static int never(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)result;
	cr_assert_fail("asked, late as it was");
	return EAI_FAIL;
}

Test(request, what_is_late_is_not_asked)
{
	struct request *request = make(0);

	real();
	real_table.getaddrinfo = never;
	request_ask(request);
	cr_assert(request->is_late);
	request_free(request);
}

static int fails(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	(void)node;
	(void)service;
	(void)hints;
	/* What a failure leaves here is no list. */
	*result = (struct addrinfo *)8;
	return EAI_FAMILY;
}

Test(request, a_failure_has_no_list_and_the_callers_errno)
{
	struct request *request = make(NEVER_NS);

	real();
	real_table.getaddrinfo = fails;
	request->answer.system_error = EDOM;
	request_ask(request);
	cr_assert_eq(request->answer.result, EAI_FAMILY);
	cr_assert_eq(request->answer.system_error, EDOM);
	cr_assert_null(request->answer.list);
	request_free(request);
}

Test(request, under_a_filter_nobody_begins_to_wait)
{
	struct request *request = make(NEVER_NS);

	own_calls_forbid();
	request_wait(request);
	cr_assert_not(request_is_done(request));
	/* Nor is anybody woken. */
	request_publish(request);
	cr_assert(request_is_done(request));
	request_free(request);
	cr_assert_eq(atomic_load(&own_calls.calling), 0);
}

/* One of them frees it, whoever comes last. */
Test(request, an_answer_and_a_caller_who_leaves_may_meet)
{
	for (int i = 0; i < 1000; i++) {
		struct request *request = make(NEVER_NS);
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, ask, request), 0);
		for (int spin = 0; spin < i % 50; spin++)
			sched_yield();
		if (!request_leave(request))
			request_free(request);
		pthread_join(thread, NULL);
	}
}
