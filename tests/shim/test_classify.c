/* SPDX-License-Identifier: MIT */
#include "shim/classify.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>

static void expect_all(enum phase phase, const int *errors, size_t count, enum outcome outcome)
{
	for (size_t i = 0; i < count; i++) {
		enum outcome got = classify_errno(&settings_default, phase, errors[i]);

		cr_expect_eq(got, outcome, "%s is %s", strerrorname_np(errors[i]),
				outcome_name(got));
	}
}

#define EXPECT_ALL(phase, outcome, ...) \
	do { \
		static const int errors[] = { __VA_ARGS__ }; \
		expect_all(phase, errors, sizeof(errors) / sizeof(errors[0]), outcome); \
	} while (0)

Test(classify, a_peer_that_cannot_be_reached_is_a_failed_connect)
{
	EXPECT_ALL(PHASE_CONNECT, OUTCOME_FAILURE, ECONNREFUSED, ECONNRESET, ECONNABORTED,
		EHOSTUNREACH, EHOSTDOWN, ENONET, ENOPROTOOPT, EPROTO);
}

Test(classify, a_connection_that_breaks_is_a_failed_exchange)
{
	EXPECT_ALL(PHASE_EXCHANGE, OUTCOME_FAILURE, ECONNRESET, ECONNABORTED, EPIPE, EHOSTUNREACH);
}

Test(classify, a_peer_that_does_not_answer_is_a_timeout_in_both_phases)
{
	EXPECT_ALL(PHASE_CONNECT, OUTCOME_TIMEOUT, ETIMEDOUT);
	EXPECT_ALL(PHASE_EXCHANGE, OUTCOME_TIMEOUT, ETIMEDOUT);
}

Test(classify, local_errors_say_nothing_about_the_peer)
{
	EXPECT_ALL(PHASE_CONNECT, OUTCOME_CANCELLED, ENETUNREACH, ENETDOWN, ENETRESET,
			EADDRNOTAVAIL, EADDRINUSE, EAGAIN, EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES,
			EPERM, EAFNOSUPPORT, EBADF, EFAULT, EINVAL);
	EXPECT_ALL(PHASE_EXCHANGE, OUTCOME_CANCELLED, ENETUNREACH, ENETDOWN, ENETRESET, ENOBUFS,
		ENOMEM, EACCES, EPERM, EBADF, EFAULT, EINVAL);
}

Test(classify, what_no_table_names_says_nothing_about_the_peer)
{
	EXPECT_ALL(PHASE_CONNECT, OUTCOME_CANCELLED, EPIPE, ENOTSOCK, 190, 4095);
	EXPECT_ALL(PHASE_EXCHANGE, OUTCOME_CANCELLED, ECONNREFUSED, EHOSTDOWN, ENOTSOCK, 190, 4095);
}

Test(classify, the_rule_may_ignore_an_error_or_count_it)
{
	struct settings settings = settings_default;
	char error[200];

	cr_assert(settings_apply(&settings, "ignore", "ECONNREFUSED", error, sizeof(error)), "%s",
			error);
	cr_assert(settings_apply(&settings, "fail", "ENETUNREACH", error, sizeof(error)), "%s",
			error);
	cr_expect_eq(classify_errno(&settings, PHASE_CONNECT, ECONNREFUSED), OUTCOME_IGNORED);
	cr_expect_eq(classify_errno(&settings, PHASE_CONNECT, ENETUNREACH), OUTCOME_FAILURE);
	cr_expect_eq(classify_errno(&settings, PHASE_CONNECT, ECONNRESET), OUTCOME_FAILURE);
}

Test(classify, a_resolver_that_fails_is_told_from_a_name_that_is_wrong)
{
	static const int local[] = { EAI_NONAME, EAI_NODATA, EAI_SERVICE, EAI_MEMORY, EAI_FAMILY,
		EAI_SOCKTYPE, EAI_BADFLAGS, EAI_ADDRFAMILY, EAI_OVERFLOW };

	cr_expect_eq(classify_lookup(&settings_default, 0, 0), OUTCOME_SUCCESS);
	cr_expect_eq(classify_lookup(&settings_default, EAI_AGAIN, 0), OUTCOME_FAILURE);
	cr_expect_eq(classify_lookup(&settings_default, EAI_FAIL, 0), OUTCOME_FAILURE);
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		cr_expect_eq(classify_lookup(&settings_default, local[i], 0), OUTCOME_CANCELLED);
}

Test(classify, a_system_error_of_a_lookup_is_judged_as_one_of_a_connect)
{
	cr_expect_eq(classify_lookup(&settings_default, EAI_SYSTEM, ETIMEDOUT), OUTCOME_TIMEOUT);
	cr_expect_eq(classify_lookup(&settings_default, EAI_SYSTEM, ECONNREFUSED), OUTCOME_FAILURE);
	cr_expect_eq(classify_lookup(&settings_default, EAI_SYSTEM, EMFILE), OUTCOME_CANCELLED);
}

Test(classify, the_rule_may_ignore_or_count_a_lookup_s_error)
{
	struct settings settings = settings_default;
	char error[200];

	cr_assert(settings_apply(&settings, "ignore", "EAI_AGAIN", error, sizeof(error)), "%s",
			error);
	cr_assert(settings_apply(&settings, "fail", "EAI_NONAME", error, sizeof(error)), "%s",
			error);
	cr_expect_eq(classify_lookup(&settings, EAI_AGAIN, 0), OUTCOME_IGNORED);
	cr_expect_eq(classify_lookup(&settings, EAI_NONAME, 0), OUTCOME_FAILURE);
}
