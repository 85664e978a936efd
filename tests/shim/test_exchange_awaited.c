/* SPDX-License-Identifier: MIT */
/* Since when a peer is awaited, and the end of a call that awaited too long. */
#include "shim/exchange_awaited.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "shim/exchange.h"

#define EPOCH_NS 1000000000000ull
#define AT(ms)   (EPOCH_NS + (uint64_t)(ms)*1000000ull)
#define NOBODY   0ull

static struct exchange exchange;
static struct settings settings;

static void setup(void)
{
	settings = settings_default;
	exchange_set(&exchange, EXCHANGE_DEADLINE);
	exchange_begin(&exchange, AT(0));
}

TestSuite(exchange_awaited, .init = setup);

static uint64_t awaited_since(void)
{
	return exchange_awaited_since_ns(&exchange);
}

static void establish(unsigned int ms)
{
	exchange_connected(&exchange, &settings, 0, AT(ms));
}

static uint8_t memory[4096];
static struct iovec vector = { memory, 16 };
static const struct bytes bytes = { &vector, 1 };

static void sends(unsigned int ms)
{
	struct exchange_step step = exchange_will_send(&exchange, &settings, bytes, AT(ms));

	if (step.starts_call)
		cr_assert(exchange_call(&exchange, AT(ms)));
	exchange_sent(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, AT(ms));
}

static enum outcome receives(unsigned int ms)
{
	return exchange_received(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, false, 0,
			AT(ms))
			.ended;
}

static void waits(unsigned int from_ms, unsigned int to_ms)
{
	exchange_wait_begins(&exchange, AT(from_ms));
	exchange_waited(&exchange, AT(from_ms), AT(to_ms));
}

/* As a TLS record, its body zero bytes. */
static void be_record(uint8_t type, uint16_t length)
{
	const uint8_t header[] = { type, 3, 3, (uint8_t)(length >> 8), (uint8_t)length };

	memcpy(memory, header, sizeof(header));
	vector.iov_len = sizeof(header) + length;
}

static void sends_record(unsigned int ms, uint8_t type, uint16_t length)
{
	be_record(type, length);
	sends(ms);
}

static void receives_record(unsigned int ms, uint8_t type, uint16_t length)
{
	be_record(type, length);
	cr_assert_eq(receives(ms), OUTCOME_NONE);
}

Test(exchange_awaited, an_attempt_since_it_began)
{
	cr_expect_eq(awaited_since(), AT(0));
	exchange_connected(&exchange, &settings, EINPROGRESS, AT(100));
	cr_expect_eq(awaited_since(), AT(0));
}

Test(exchange_awaited, nobody_on_a_silent_connection)
{
	establish(1);
	cr_expect_eq(awaited_since(), NOBODY);
}

Test(exchange_awaited, an_answer_since_the_last_byte_was_taken)
{
	establish(1);
	sends(5);
	cr_expect_eq(awaited_since(), AT(5));
	sends(200);
	cr_expect_eq(awaited_since(), AT(200));
	exchange_sent(&exchange, &settings, bytes, -1, EAGAIN, AT(300));
	cr_expect_eq(awaited_since(), AT(200));
}

Test(exchange_awaited, nobody_once_the_answer_has_begun)
{
	establish(1);
	sends(5);
	cr_expect_eq(receives(10), OUTCOME_SUCCESS);
	cr_expect_eq(awaited_since(), NOBODY);
}

Test(exchange_awaited, the_answer_to_a_further_request)
{
	establish(1);
	sends(5);
	receives(10);
	sends(1000);
	cr_expect_eq(awaited_since(), AT(1000));
}

Test(exchange_awaited, a_greeting_while_the_program_waits_for_it)
{
	establish(1);
	exchange_wait_begins(&exchange, AT(50));
	cr_expect_eq(awaited_since(), AT(50));
	exchange_waited(&exchange, AT(50), AT(90));
	cr_expect_eq(awaited_since(), NOBODY, "it waits no more");
}

Test(exchange_awaited, waits_for_a_greeting_add_up)
{
	establish(1);
	waits(10, 50);
	waits(100, 130);
	exchange_wait_begins(&exchange, AT(1000));
	cr_expect_eq(awaited_since(), AT(1000 - 40 - 30));
}

Test(exchange_awaited, what_the_kernel_moved_counts_as_taken)
{
	establish(1);
	sends(5);
	exchange_moved(&exchange, AT(80));
	cr_expect_eq(awaited_since(), AT(80));
	exchange_moved(&exchange, AT(70));
	cr_expect_eq(awaited_since(), AT(80), "never back");
}

Test(exchange_awaited, nobody_where_connecting_is_all)
{
	settings.guard = GUARD_CONNECT;
	establish(1);
	sends(5);
	cr_expect_eq(awaited_since(), NOBODY);
}

static void shakes_hands13(void)
{
	establish(0);
	sends_record(0, 22, 512);
	cr_expect_eq(awaited_since(), AT(0), "the server's flight");
	receives_record(1, 22, 122);
	receives_record(1, 20, 1);
	receives_record(1, 23, 839);
	sends_record(9, 23, 69);
}

Test(exchange_awaited, nobody_after_a_handshake_of_tls13)
{
	shakes_hands13();
	cr_expect_eq(awaited_since(), NOBODY);
	receives_record(10, 23, 234);
	cr_expect_eq(awaited_since(), NOBODY, "a session ticket");
}

Test(exchange_awaited, the_answer_to_a_request_over_tls13)
{
	shakes_hands13();
	sends_record(20, 23, 96);
	cr_expect_eq(awaited_since(), AT(20));
	receives_record(21, 23, 234);
	receives_record(21, 23, 234);
	cr_expect_eq(awaited_since(), AT(20), "two of one length: tickets");
}

Test(exchange_awaited, what_may_have_been_a_short_answer_ends_it_unless_the_program_waits_on)
{
	shakes_hands13();
	sends_record(20, 23, 96);
	receives_record(21, 23, 234);
	cr_expect_eq(awaited_since(), NOBODY);
	exchange_wait_begins(&exchange, AT(30));
	cr_expect_eq(awaited_since(), AT(30));
	exchange_waited(&exchange, AT(30), AT(40));
	cr_expect_eq(awaited_since(), NOBODY);
}

Test(exchange_awaited, short_answers_are_told_one_by_one)
{
	shakes_hands13();
	for (unsigned int ms = 20; ms < 80; ms += 20) {
		sends_record(ms, 23, 96);
		cr_expect_eq(awaited_since(), AT(ms));
		receives_record(ms + 1, 23, 234);
		cr_expect_eq(awaited_since(), NOBODY);
	}
}

Test(exchange_awaited, nobody_after_a_handshake_of_tls12)
{
	establish(0);
	sends_record(0, 22, 512);
	receives_record(1, 22, 122);
	sends_record(2, 22, 70);
	sends_record(2, 20, 1);
	sends_record(2, 22, 40);
	cr_expect_eq(awaited_since(), AT(2), "the server's Finished");
	receives_record(3, 20, 1);
	receives_record(3, 22, 40);
	cr_expect_eq(awaited_since(), NOBODY);
	sends_record(500, 23, 96);
	cr_expect_eq(awaited_since(), AT(500));
}

Test(exchange_awaited, a_call_expires_once_and_the_connection_is_dead)
{
	establish(1);
	sends(5);
	cr_assert(exchange_expiring(&exchange));
	cr_expect_eq(exchange_expire(&exchange, true).ended, OUTCOME_TIMEOUT);
	cr_expect(exchange_has(&exchange, EXCHANGE_TIMED_OUT));
	cr_expect_not(exchange_expiring(&exchange));
	cr_expect_eq(exchange_expire(&exchange, true).ended, OUTCOME_NONE);
	cr_expect_not(exchange_is_new_attempt(&exchange));
	cr_expect_eq(receives(10), OUTCOME_NONE);
	cr_expect_eq(exchange_received(&exchange, &settings, bytes, 0, 0, false, 0, AT(10)).ended,
			OUTCOME_NONE);
	cr_expect_not(exchange_will_send(&exchange, &settings, bytes, AT(10)).starts_call);
	cr_expect_eq(exchange_closed(&exchange, &settings, AT(5000)).ended, OUTCOME_NONE);
}

Test(exchange_awaited, an_attempt_that_expires_is_no_new_one_later)
{
	cr_assert(exchange_expiring(&exchange));
	cr_expect_eq(exchange_expire(&exchange, true).ended, OUTCOME_TIMEOUT);
	cr_expect_eq(exchange_connected(&exchange, &settings, ECONNRESET, AT(9)).ended,
			OUTCOME_NONE);
	cr_expect_eq(exchange_so_error(&exchange, &settings, ECONNRESET, AT(9)).ended,
			OUTCOME_NONE);
	cr_expect_not(exchange_is_new_attempt(&exchange));
}

/* Between the two halves the call ends, and the next one begins. */
Test(exchange_awaited, the_next_call_does_not_expire_in_place_of_this)
{
	establish(1);
	sends(5);
	cr_assert(exchange_expiring(&exchange));
	cr_assert_eq(receives(10), OUTCOME_SUCCESS);
	cr_expect_eq(exchange_expire(&exchange, true).ended, OUTCOME_NONE);
	sends(20);
	cr_expect_eq(exchange_expire(&exchange, true).ended, OUTCOME_NONE);
	cr_expect_eq(receives(30), OUTCOME_SUCCESS);
	cr_expect_not(exchange_has(&exchange, EXCHANGE_TIMED_OUT));
}

Test(exchange_awaited, observed_it_is_counted_and_lives_on)
{
	establish(1);
	sends(5);
	cr_assert(exchange_expiring(&exchange));
	cr_expect_eq(exchange_expire(&exchange, false).ended, OUTCOME_TIMEOUT);
	cr_expect_not(exchange_has(&exchange, EXCHANGE_TIMED_OUT));
	cr_expect_eq(receives(10), OUTCOME_NONE);
	sends(20);
	cr_expect_eq(receives(30), OUTCOME_SUCCESS);
}
