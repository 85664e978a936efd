/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>

#include "core/error_set.h"
#include "core/possible.h"

#define CONNECT POSSIBLE_CONNECT
#define SEND POSSIBLE_SEND
#define RECV POSSIBLE_RECV
#define ALL (CONNECT | SEND | RECV)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	int error;
	unsigned int of_stream, of_datagram; /* blocking */
} rows[] = {
	{ ECONNREFUSED, ALL, SEND | RECV },
	{ ECONNRESET, ALL, 0 },
	{ ETIMEDOUT, ALL, 0 },
	{ EHOSTUNREACH, ALL, ALL },
	{ EPIPE, SEND, 0 },
	{ ENOTCONN, RECV, 0 },
	{ EMSGSIZE, 0, SEND | RECV },
	{ EADDRNOTAVAIL, CONNECT, CONNECT },
	{ EINTR, ALL, SEND | RECV },
	{ EINPROGRESS, 0, 0 },
	{ EBADF, 0, 0 },
	{ EFAULT, 0, 0 },
	{ EMFILE, 0, 0 },
	{ EIO, 0, 0 },
	{ 0, 0, 0 },
	{ -3, 0, 0 },
};

Test(possible, a_call_comes_to_its_own_errors_alone)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		cr_expect_eq(possible_calls(ALL, false, true, rows[i].error), rows[i].of_stream,
				"%d", rows[i].error);
		cr_expect_eq(possible_calls(ALL, true, true, rows[i].error), rows[i].of_datagram,
				"%d", rows[i].error);
		cr_expect_eq(possible_calls(RECV, false, true, rows[i].error),
				rows[i].of_stream & RECV, "%d", rows[i].error);
	}
}

Test(possible, what_tells_of_waiting_depends_on_the_mode)
{
	cr_expect_eq(possible_calls(ALL, false, false, EINPROGRESS), CONNECT);
	cr_expect_eq(possible_calls(ALL, false, false, EALREADY), CONNECT);
	cr_expect_eq(possible_calls(ALL, false, false, EINTR), 0);
	cr_expect_eq(possible_calls(ALL, false, false, EAGAIN), ALL);
	cr_expect_eq(possible_calls(ALL, false, false, ECONNRESET), ALL);
}

Test(possible, the_nearest_is_one_that_can_be)
{
	cr_expect_str_eq(possible_nearest(CONNECT, false, "ECONREFUSED"), "ECONNREFUSED");
	cr_expect_str_eq(possible_nearest(SEND, false, "EPIPEE"), "EPIPE");
	cr_expect_null(possible_nearest(RECV, false, "EPIPEE"));
	cr_expect_null(possible_nearest(ALL, false, "ELEPHANT"));
}

Test(possible, likely_ones_are_listed)
{
	char text[96];

	possible_list(CONNECT, false, text, sizeof(text));
	cr_expect_str_eq(text, "ECONNREFUSED, ECONNRESET or ETIMEDOUT");
	possible_list(CONNECT, true, text, sizeof(text));
	cr_expect_str_eq(text, "EHOSTUNREACH, ENETUNREACH or ENETDOWN");
	possible_list(ALL, false, text, 8);
	cr_expect_eq(text[7], '\0');
}
