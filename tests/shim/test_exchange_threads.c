/* SPDX-License-Identifier: MIT */
/* Two threads on one TLS connection: one reads the answer before the other's send has returned. */
#include "shim/exchange.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define EPOCH_NS 1000000000000ull
#define AT(ms) (EPOCH_NS + (uint64_t)(ms) * 1000000ull)

static struct exchange exchange;
static struct settings settings;

static void setup(void)
{
	settings = settings_default;
	exchange_begin(&exchange, AT(0));
	exchange_connected(&exchange, &settings, 0, AT(0));
}

TestSuite(exchange_threads, .init = setup);

/* One record of this type and length. */
static struct bytes record(uint8_t type, uint16_t length)
{
	static uint8_t data[4096];
	static struct iovec vector;

	memcpy(data, (uint8_t[]){ type, 3, 3, length >> 8, length & 0xff }, 5);
	vector = (struct iovec){ data, 5u + length };
	return (struct bytes){ &vector, 1 };
}

static void will_send(unsigned int ms, uint8_t type, uint16_t length)
{
	struct bytes bytes = record(type, length);

	cr_assert_not(exchange_is_sending(&exchange));
	cr_assert_not(exchange_will_send(&exchange, &settings, bytes, AT(ms)).starts_call);
}

static enum outcome sent(unsigned int ms, uint8_t type, uint16_t length, int error)
{
	struct bytes bytes = record(type, length);
	ssize_t result = error ? -1 : (ssize_t)bytes.vectors->iov_len;

	return exchange_sent(&exchange, &settings, bytes, result, error, AT(ms)).ended;
}

static void sends(unsigned int ms, uint8_t type, uint16_t length)
{
	will_send(ms, type, length);
	cr_assert_eq(sent(ms, type, length, 0), OUTCOME_NONE);
}

static enum outcome receives(unsigned int ms, uint8_t type, uint16_t length)
{
	struct bytes bytes = record(type, length);

	return exchange_received(&exchange, &settings, bytes, (ssize_t)bytes.vectors->iov_len, 0,
			false, 0, AT(ms))
			.ended;
}

/* TLS 1.3 up to the client's Finished. */
static void shake_hands(void)
{
	sends(1, TLS_HANDSHAKE, 440);
	cr_assert_eq(receives(2, TLS_HANDSHAKE, 122), OUTCOME_NONE);
	cr_assert_eq(receives(2, TLS_APPLICATION, 839), OUTCOME_NONE);
	sends(3, TLS_APPLICATION, 85);
}

Test(exchange_threads, a_handshake_read_before_its_send_returns_is_no_answer)
{
	will_send(1, TLS_HANDSHAKE, 440);
	cr_expect_eq(receives(2, TLS_HANDSHAKE, 122), OUTCOME_NONE);
	cr_expect_eq(sent(3, TLS_HANDSHAKE, 440, 0), OUTCOME_NONE);
	cr_expect_eq(exchange_closed(&exchange, &settings, AT(3000)).ended, OUTCOME_TIMEOUT);
}

Test(exchange_threads, an_answer_read_before_the_request_returns_is_one)
{
	shake_hands();
	will_send(4, TLS_APPLICATION, 173);
	cr_expect_eq(receives(5, TLS_APPLICATION, 3000), OUTCOME_SUCCESS);
	cr_expect_eq(sent(6, TLS_APPLICATION, 173, 0), OUTCOME_NONE);
	cr_expect(exchange_will_send(&exchange, &settings, record(TLS_APPLICATION, 173), AT(7))
					.starts_call);
}

Test(exchange_threads, a_request_that_was_not_sent_asked_for_nothing)
{
	shake_hands();
	will_send(4, TLS_APPLICATION, 173);
	cr_expect_eq(sent(4, TLS_APPLICATION, 173, EAGAIN), OUTCOME_NONE);
	cr_expect_eq(receives(200, TLS_APPLICATION, 250), OUTCOME_NONE, "a ticket, however late");
	sends(201, TLS_APPLICATION, 173);
	cr_expect_eq(receives(400, TLS_APPLICATION, 250), OUTCOME_SUCCESS);
}

Test(exchange_threads, a_farewell_reset_after_one_short_answer_is_the_programs_close)
{
	shake_hands();
	sends(4, TLS_APPLICATION, 173);
	cr_expect_eq(receives(5, TLS_APPLICATION, 123), OUTCOME_NONE, "a ticket or a short answer");
	will_send(6, TLS_APPLICATION, 35);
	cr_expect_eq(sent(6, TLS_APPLICATION, 35, EPIPE), OUTCOME_SUCCESS);
}

Test(exchange_threads, a_request_reset_without_an_answer_is_a_failure)
{
	shake_hands();
	will_send(4, TLS_APPLICATION, 173);
	cr_expect_eq(sent(4, TLS_APPLICATION, 173, ECONNRESET), OUTCOME_FAILURE);
}
