/* SPDX-License-Identifier: MIT */
/* Calls on TLS connections: what test_tls.c shows of records, seen from the exchange. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "shim/exchange.h"

#define EPOCH_NS 1000000000000ull
#define AT(ms) (EPOCH_NS + (uint64_t)(ms) * 1000000ull)

static struct exchange exchange;
static struct settings settings;

/* Headers only: bodies are zero bytes. */
static size_t put(uint8_t *at, uint8_t type, uint16_t length)
{
	static const uint8_t version[] = { 3, 3 };

	at[0] = type;
	memcpy(at + 1, version, 2);
	at[3] = (uint8_t)(length >> 8);
	at[4] = (uint8_t)length;
	memset(at + 5, 0, length);
	return 5u + length;
}

static uint8_t record[32768];
static struct iovec vector;

static struct bytes record_bytes(uint8_t type, uint16_t length)
{
	vector = (struct iovec){ record, put(record, type, length) };
	return (struct bytes){ &vector, 1 };
}

static enum outcome sends(unsigned int ms, uint8_t type, uint16_t length)
{
	struct bytes bytes = record_bytes(type, length);

	cr_assert_not(exchange_will_send(&exchange, &settings, bytes, AT(ms)).starts_call);
	return exchange_sent(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, AT(ms)).ended;
}

static enum outcome receives(unsigned int ms, uint8_t type, uint16_t length)
{
	struct bytes bytes = record_bytes(type, length);

	return exchange_received(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, false, 0,
			AT(ms)).ended;
}

static enum outcome fails(unsigned int ms, int error)
{
	return exchange_received(&exchange, &settings, record_bytes(0, 0), error ? -1 : 0, error,
			false, 0, AT(ms))
			.ended;
}

static enum outcome closes(unsigned int ms)
{
	return exchange_closed(&exchange, &settings, AT(ms)).ended;
}

static void setup(void)
{
	settings = settings_default;
	exchange_begin(&exchange, AT(0));
	exchange_connected(&exchange, &settings, 0, AT(0));
}

/* TLS 1.3 up to and with the request, at 10 ms. */
static void asks13(void)
{
	setup();
	sends(0, 22, 512);
	cr_assert_eq(receives(1, 22, 122), OUTCOME_NONE);
	cr_assert_eq(receives(1, 23, 839), OUTCOME_NONE);
	sends(9, 23, 69);
	sends(10, 23, 96);
}

static void asks12(void)
{
	setup();
	sends(0, 22, 512);
	cr_assert_eq(receives(1, 22, 93), OUTCOME_NONE);
	sends(10, 23, 96);
}

TestSuite(exchange_tls, .init = setup);

Test(exchange_tls, a_hang_is_a_timeout_after_any_number_of_tickets)
{
	for (int tickets = 0; tickets <= 4; tickets++) {
		asks13();
		for (int i = 0; i < tickets; i++)
			cr_assert_eq(receives(11, 23, 250), OUTCOME_NONE);
		sends(3000, 23, 19);
		cr_expect_eq(closes(3001), OUTCOME_TIMEOUT, "%d tickets", tickets);
	}
}

Test(exchange_tls, a_slow_answer_is_a_success_after_any_number_of_tickets)
{
	for (int tickets = 0; tickets <= 4; tickets++) {
		asks13();
		for (int i = 0; i < tickets; i++)
			cr_assert_eq(receives(11, 23, 250), OUTCOME_NONE);
		cr_expect_eq(receives(2010, 23, 57), OUTCOME_SUCCESS, "%d tickets", tickets);
	}
}

Test(exchange_tls, eof_and_close_after_exactly_one_ticket_are_an_answer_within_abandon)
{
	for (int tickets = 0; tickets <= 2; tickets++) {
		enum outcome eof = tickets == 1 ? OUTCOME_SUCCESS : OUTCOME_FAILURE;
		enum outcome gone = tickets == 1 ? OUTCOME_SUCCESS : OUTCOME_CANCELLED;

		for (int way = 0; way < 3; way++) {
			asks13();
			for (int i = 0; i < tickets; i++)
				receives(11, 23, 250);
			if (way == 0)
				cr_expect_eq(fails(1009, 0), eof, "%d tickets", tickets);
			else if (way == 1)
				cr_expect_eq(closes(1009), gone, "%d tickets", tickets);
			else
				cr_expect_eq(fails(12, ECONNRESET), OUTCOME_FAILURE);
		}
	}
	asks13();
	receives(11, 23, 250);
	cr_expect_eq(closes(1011), OUTCOME_TIMEOUT);
	asks13();
	receives(11, 23, 250);
	cr_expect_eq(fails(1011, 0), OUTCOME_TIMEOUT);
}

Test(exchange_tls, a_handshake_that_never_ends_is_a_timeout)
{
	sends(0, 22, 512);
	cr_expect_eq(closes(1000), OUTCOME_TIMEOUT);
}

Test(exchange_tls, an_alert_and_eof_in_the_handshake_are_a_failure)
{
	sends(0, 22, 512);
	cr_expect_eq(receives(1, 21, 2), OUTCOME_NONE);
	cr_expect_eq(fails(1, 0), OUTCOME_FAILURE);
}

Test(exchange_tls, a_server_that_leaves_after_the_programs_own_farewell_did_not_fail)
{
	/* TLS 1.3: a handshake, close_notify; with a request before it, and padded. */
	sends(0, 22, 512);
	receives(1, 22, 122);
	receives(1, 23, 839);
	sends(9, 23, 69);
	sends(10, 23, 19);
	cr_expect_eq(fails(12, 0), OUTCOME_UNUSED);
	asks13();
	sends(11, 23, 35);
	cr_expect_eq(fails(12, 0), OUTCOME_UNUSED);

	/* TLS 1.2, encrypted; and an alert in the clear, in the middle of the handshake. */
	asks12();
	sends(11, 21, 26);
	cr_expect_eq(fails(12, 0), OUTCOME_UNUSED);
	setup();
	sends(0, 22, 512);
	receives(1, 22, 93);
	sends(2, 21, 2);
	cr_expect_eq(fails(3, 0), OUTCOME_UNUSED);

	/* One that had to be waited for shows a server that hangs. */
	asks13();
	sends(11, 23, 19);
	cr_expect_eq(fails(1500, 0), OUTCOME_TIMEOUT);
}

Test(exchange_tls, a_server_that_left_without_reading_the_farewell_did_not_fail)
{
	/* Its close resets what it has not read. After one short record, which was the answer. */
	asks13();
	receives(11, 23, 271);
	sends(12, 23, 19);
	cr_expect_eq(fails(13, ECONNRESET), OUTCOME_SUCCESS);
	asks13();
	sends(12, 23, 19);
	cr_expect_eq(fails(13, ECONNRESET), OUTCOME_UNUSED);
	asks13();
	sends(12, 23, 19);
	cr_expect_eq(fails(1500, ECONNRESET), OUTCOME_TIMEOUT);

	/* What was asked for again is a failure again. */
	asks13();
	sends(11, 23, 19);
	sends(11, 23, 1200);
	cr_expect_eq(fails(12, ECONNRESET), OUTCOME_FAILURE);
}

Test(exchange_tls, data_as_short_as_a_farewell_is_none_when_more_follows)
{
	asks13();
	sends(11, 23, 19);
	sends(11, 23, 1200);
	cr_expect_eq(fails(12, 0), OUTCOME_FAILURE);

	/* In 1.2 an alert has a type of its own. */
	asks12();
	sends(11, 23, 19);
	cr_expect_eq(fails(12, 0), OUTCOME_FAILURE);
}

Test(exchange_tls, a_server_that_answers_in_plain_text_has_answered)
{
	static char text[] = "HTTP/1.1 400 Bad Request\r\n";
	struct iovec plain = { text, sizeof(text) - 1 };

	sends(0, 22, 512);
	cr_expect_eq(exchange_received(&exchange, &settings, (struct bytes){ &plain, 1 },
			(ssize_t)plain.iov_len, 0, false, 0, AT(1)).ended, OUTCOME_SUCCESS);
}

Test(exchange_tls, only_application_data_starts_a_call_on_an_answered_connection)
{
	static const struct {
		uint8_t type;
		uint16_t length;
		bool starts;
	} records[] = { { 21, 26, false }, { 22, 40, false }, { 20, 1, false }, { 23, 19, false },
		{ 23, 35, false }, { 23, 96, true }, { 23, 36, true } };

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		asks12();
		cr_assert_eq(receives(11, 23, 118), OUTCOME_SUCCESS);
		cr_expect_eq(exchange_will_send(&exchange, &settings,
			record_bytes(records[i].type, records[i].length), AT(12)).starts_call,
			records[i].starts, "%d:%d", records[i].type, records[i].length);
	}
}

Test(exchange_tls, the_answer_of_a_reused_connection_is_its_first_record)
{
	struct bytes bytes;

	asks13();
	receives(11, 23, 250);
	receives(11, 23, 250);
	cr_assert_eq(receives(50, 23, 118), OUTCOME_SUCCESS);
	bytes = record_bytes(23, 97);
	cr_assert(exchange_will_send(&exchange, &settings, bytes, AT(60)).starts_call);
	exchange_call(&exchange, AT(60));
	exchange_sent(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, AT(60));
	cr_expect_eq(receives(61, 23, 250), OUTCOME_SUCCESS);
}

/* A send of the rest of what the last one offered. */
static struct bytes rest_of(size_t sent)
{
	static struct iovec rest;

	rest = (struct iovec){ record + sent, vector.iov_len - sent };
	return (struct bytes){ &rest, 1 };
}

Test(exchange_tls, a_record_sent_in_two_parts_is_one_call)
{
	for (size_t part = 1; part <= 100; part++) {
		struct bytes bytes;

		asks12();
		cr_assert_eq(receives(11, 23, 118), OUTCOME_SUCCESS);
		bytes = record_bytes(23, 96);
		cr_assert(exchange_will_send(&exchange, &settings, bytes, AT(12)).starts_call);
		cr_assert(exchange_call(&exchange, AT(12)));
		exchange_sent(&exchange, &settings, bytes, (ssize_t)part, 0, AT(12));
		bytes = rest_of(part);
		cr_assert_not(exchange_will_send(&exchange, &settings, bytes, AT(13)).starts_call);
		exchange_sent(&exchange, &settings, bytes, (ssize_t)(vector.iov_len - part), 0,
				AT(13));
		cr_assert_eq(receives(14, 23, 118), OUTCOME_SUCCESS);
		cr_assert(exchange_will_send(&exchange, &settings, record_bytes(23, 40), AT(15))
				.starts_call);
	}
}

Test(exchange_tls, an_answer_in_the_middle_of_a_record_does_not_make_its_rest_a_call)
{
	struct bytes bytes;

	asks12();
	receives(11, 23, 118);
	bytes = record_bytes(23, 9000);
	cr_assert(exchange_will_send(&exchange, &settings, bytes, AT(12)).starts_call);
	exchange_call(&exchange, AT(12));
	exchange_sent(&exchange, &settings, bytes, 4000, 0, AT(12));
	cr_assert_eq(receives(13, 23, 118), OUTCOME_SUCCESS);
	record_bytes(23, 9000);
	bytes = rest_of(4000);
	cr_expect_not(exchange_will_send(&exchange, &settings, bytes, AT(14)).starts_call);
	exchange_sent(&exchange, &settings, bytes, 5005, 0, AT(14));
	cr_expect(exchange_will_send(&exchange, &settings, record_bytes(23, 40), AT(15))
					.starts_call);
}

Test(exchange_tls, a_refused_send_leaves_the_records_where_they_were)
{
	struct exchange before;

	asks12();
	receives(11, 23, 118);
	before = exchange;
	cr_assert(exchange_will_send(&exchange, &settings, record_bytes(23, 96), AT(12))
					.starts_call);
	cr_expect(memcmp(&before, &exchange, sizeof(before)) == 0);
}

Test(exchange_tls, the_answer_is_counted_once_wherever_the_stream_is_cut)
{
	static uint8_t stream[4096];
	size_t size = 0, header;

	size += put(stream, 23, 250);
	size += put(stream + size, 23, 250);
	header = size + 5;
	size += put(stream + size, 23, 118);
	size += put(stream + size, 23, 19);
	for (size_t cut = 0; cut <= size; cut++) {
		struct iovec parts[] = { { stream, cut }, { stream + cut, size - cut } };
		enum outcome first = OUTCOME_NONE, second = OUTCOME_NONE;

		asks13();
		if (cut > 0)
			first = exchange_received(&exchange, &settings,
					(struct bytes){&parts[0], 1}, (ssize_t)cut, 0, false, 0,
					AT(11))
						.ended;
		if (cut < size)
			second = exchange_received(&exchange, &settings,
					(struct bytes){&parts[1], 1}, (ssize_t)(size - cut), 0,
					false, 0, AT(12))
						 .ended;
		cr_assert_eq(first, cut >= header ? OUTCOME_SUCCESS : OUTCOME_NONE, "cut at %zu",
				cut);
		cr_assert_eq(second, cut >= header ? OUTCOME_NONE : OUTCOME_SUCCESS, "cut at %zu",
				cut);
	}
}

Test(exchange_tls, a_peek_at_a_ticket_does_not_end_the_wait)
{
	struct bytes bytes;

	asks13();
	for (unsigned int ms = 20; ms <= 1010; ms += 90) {
		bytes = record_bytes(23, 250);
		/* Within the time of tickets it is one; the clock of the peeks stands still. */
		exchange_received(&exchange, &settings, bytes, (ssize_t)vector.iov_len, 0, true, 0,
				AT(20));
	}
	cr_expect_eq(closes(1010), OUTCOME_TIMEOUT);
}

Test(exchange_tls, where_the_kernel_does_tls_the_bytes_are_what_they_are)
{
	static char text[] = "GET / HTTP/1.1\r\n";
	struct iovec plain = { text, sizeof(text) - 1 };
	struct bytes bytes = { &plain, 1 };

	asks12();
	cr_assert_eq(receives(11, 23, 118), OUTCOME_SUCCESS);
	cr_assert(exchange_will_send(&exchange, &settings, bytes, AT(12)).starts_call);
	exchange_call(&exchange, AT(12));
	exchange_sent(&exchange, &settings, bytes, (ssize_t)plain.iov_len, 0, AT(12));
	cr_expect_not(exchange_has(&exchange, EXCHANGE_TLS));
	cr_expect_eq(exchange_received(&exchange, &settings, bytes, 1, 0, false, 0, AT(13)).ended,
		OUTCOME_SUCCESS);
}
