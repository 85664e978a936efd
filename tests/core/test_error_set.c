/* SPDX-License-Identifier: MIT */
#include "core/error_set.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <netdb.h>

Test(error_set, names_of_both_kinds_read_and_write)
{
	cr_expect_eq(error_from_name("ECONNRESET"), ECONNRESET);
	cr_expect_eq(error_from_name("EAI_AGAIN"), EAI_AGAIN);
	cr_expect_str_eq(error_name(ECONNRESET), "ECONNRESET");
	cr_expect_str_eq(error_name(EAI_NONAME), "EAI_NONAME");
	cr_expect_null(error_name(0));
	cr_expect_null(error_name(ENOENT));
}

Test(error_set, what_ends_no_call_has_no_name_here)
{
	static const char *const none[] = {"", "EINPROGRESS", "EALREADY", "EINTR", "EAGAIN",
			"EWOULDBLOCK", "econnreset", "ECONNRESET ", "104", "EOF", "ENOSUCH"};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect_eq(error_from_name(none[i]), 0, "%s", none[i]);
}

Test(error_set, the_nearest_name_is_offered)
{
	cr_expect_str_eq(error_nearest_name("ECONRESET"), "ECONNRESET");
	cr_expect_str_eq(error_nearest_name("econnrefused"), "ECONNREFUSED");
	cr_expect_str_eq(error_nearest_name("EAI_AGIAN"), "EAI_AGAIN");
	cr_expect_null(error_nearest_name("elephants"));
}

Test(error_set, holds_what_was_added_and_nothing_else)
{
	struct error_set set = { { 0 }, { 0 } };

	error_set_add(&set, ECONNRESET);
	error_set_add(&set, EPIPE);
	error_set_add(&set, EAI_OVERFLOW);
	for (int error = -200; error < 300; error++) {
		cr_expect_eq(error_set_has_errno(&set, error),
				error == ECONNRESET || error == EPIPE, "errno %d", error);
		cr_expect_eq(error_set_has_eai(&set, error), error == EAI_OVERFLOW, "EAI %d",
				error);
	}
}

Test(error_set, values_past_the_set_are_neither_added_nor_found)
{
	struct error_set set = { { 0 }, { 0 } };

	error_set_add(&set, 192);
	error_set_add(&set, -128);
	error_set_add(&set, 100000);
	for (int error = -1000; error < 1000; error++)
		cr_expect_not(error_set_has_errno(&set, error) || error_set_has_eai(&set, error));
	cr_expect_not(error_set_has_errno(&set, INT32_MIN) || error_set_has_eai(&set, INT32_MIN));
	cr_expect_not(error_set_has_errno(&set, INT32_MAX) || error_set_has_eai(&set, INT32_MAX));
}

Test(error_set, what_two_sets_share_is_named)
{
	struct error_set a = { { 0 }, { 0 } }, b = { { 0 }, { 0 } };

	error_set_add(&a, ECONNRESET);
	error_set_add(&b, EPIPE);
	cr_expect_eq(error_set_common(&a, &b), 0);
	error_set_add(&a, EAI_FAIL);
	error_set_add(&b, EAI_FAIL);
	cr_expect_eq(error_set_common(&a, &b), EAI_FAIL);
	error_set_add(&a, EPIPE);
	cr_expect_eq(error_set_common(&a, &b), EPIPE);
}
