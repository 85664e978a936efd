/* SPDX-License-Identifier: MIT */
#include "shim/tls.h"

#include <criterion/criterion.h>
#include <string.h>

#define EPOCH_NS 1000000000000ull
#define AT(ms) (EPOCH_NS + (ms) * 1000000ull)

/* A healthy exchange of curl in TLS 1.3, as it was recorded: two tickets, then the answer. */
static const struct tls_record client_hello = { 22, 512 };
static const struct tls_record client_finished[] = { { 20, 1 }, { 23, 69 } };
static const struct tls_record request = { 23, 96 };
static const struct tls_record server_flight[] = { { 22, 122 }, { 20, 1 }, { 23, 23 }, { 23, 839 },
	{ 23, 281 }, { 23, 69 } };
static const struct tls_record ticket = { 23, 250 };
static const struct tls_record answer = { 23, 118 };
static const struct tls_record farewell = { 23, 19 };

struct stream {
	uint8_t bytes[65536];
	size_t size;
};

/* A record whose body looks like headers all over. */
static void stream_add(struct stream *stream, struct tls_record record)
{
	static const uint8_t body[] = { 23, 3, 3, 0, 40 };
	uint8_t *at = stream->bytes + stream->size;

	at[0] = record.type;
	at[1] = 3;
	at[2] = 3;
	at[3] = (uint8_t)(record.length >> 8);
	at[4] = (uint8_t)record.length;
	for (size_t i = 0; i < record.length; i++)
		at[5 + i] = body[i % sizeof(body)];
	stream->size += 5u + record.length;
}

static void stream_add_all(struct stream *stream, const struct tls_record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stream_add(stream, records[i]);
}

#define ADD_ALL(stream, records) \
	stream_add_all(stream, records, sizeof(records) / sizeof((records)[0]))

/* Reads a piece and appends the records that were completed. */
static void read_piece(struct tls_reader *reader, const uint8_t *bytes, size_t size,
		struct tls_record *ret, size_t *ret_count)
{
	while (tls_next(reader, &bytes, &size, &ret[*ret_count])) {
		++*ret_count;
		cr_assert_lt(*ret_count, 100);
	}
	cr_assert_eq(size, 0);
}

static void expect_server_records(const struct tls_record *records, size_t count)
{
	cr_assert_eq(count, 9);
	cr_expect(memcmp(records, server_flight, sizeof(server_flight)) == 0);
	cr_expect_eq(records[6].length, ticket.length);
	cr_expect_eq(records[7].length, ticket.length);
	cr_expect_eq(records[8].length, answer.length);
}

static struct stream *server_stream(void)
{
	static struct stream stream;

	stream.size = 0;
	ADD_ALL(&stream, server_flight);
	stream_add(&stream, ticket);
	stream_add(&stream, ticket);
	stream_add(&stream, answer);
	return &stream;
}

Test(tls, records_are_the_same_wherever_a_stream_is_cut_in_two)
{
	const struct stream *stream = server_stream();

	for (size_t cut = 0; cut <= stream->size; cut++) {
		struct tls_record records[100] = { 0 };
		struct tls_reader reader = { 0 };
		size_t count = 0;

		read_piece(&reader, stream->bytes, cut, records, &count);
		read_piece(&reader, stream->bytes + cut, stream->size - cut, records, &count);
		expect_server_records(records, count);
	}
}

Test(tls, records_are_the_same_in_pieces_of_any_size)
{
	const struct stream *stream = server_stream();

	for (size_t piece = 1; piece <= 64; piece++) {
		struct tls_record records[100] = { 0 };
		struct tls_reader reader = { 0 };
		size_t count = 0;

		for (size_t at = 0; at < stream->size; at += piece)
			read_piece(&reader, stream->bytes + at,
					stream->size - at < piece ? stream->size - at : piece,
					records, &count);
		expect_server_records(records, count);
	}
}

Test(tls, the_longest_and_the_shortest_records_are_followed)
{
	static struct stream stream;
	struct tls_record records[100] = { 0 };
	struct tls_reader reader = { 0 };
	size_t count = 0;

	stream_add(&stream, (struct tls_record){ 23, 16384 + 256 });
	stream_add(&stream, (struct tls_record){ 22, 0 });
	stream_add(&stream, (struct tls_record){ 23, 1 });
	read_piece(&reader, stream.bytes, stream.size, records, &count);
	cr_assert_eq(count, 3);
	cr_expect_eq(records[0].length, 16384 + 256);
	cr_expect_eq(records[1].length, 0);
	cr_expect_eq(records[2].length, 1);
}

Test(tls, what_cannot_be_a_record_is_told)
{
	cr_expect(tls_record_is_plausible((struct tls_record){ 20, 1 }));
	cr_expect(tls_record_is_plausible((struct tls_record){ 24, 3 }));
	cr_expect_not(tls_record_is_plausible((struct tls_record){ 19, 1 }));
	cr_expect_not(tls_record_is_plausible((struct tls_record){ 25, 1 }));
	cr_expect_not(tls_record_is_plausible((struct tls_record){ 'H', 1 }));
	cr_expect_not(tls_record_is_plausible((struct tls_record){ 23, 65535 }));
}

static struct tls connection;

static enum tls_sight sends(uint64_t now_ns, const struct stream *stream)
{
	struct iovec vector = { (void *)stream->bytes, stream->size };

	return tls_sent(&connection, (struct bytes){ &vector, 1 }, stream->size, now_ns);
}

static enum tls_sight receives(uint64_t now_ns, const struct stream *stream)
{
	struct iovec vector = { (void *)stream->bytes, stream->size };

	return tls_received(&connection, (struct bytes){ &vector, 1 }, stream->size, true, false,
			now_ns);
}

static enum tls_sight sends_one(uint64_t now_ns, struct tls_record record)
{
	static struct stream stream;

	stream.size = 0;
	stream_add(&stream, record);
	return sends(now_ns, &stream);
}

static enum tls_sight receives_one(uint64_t now_ns, struct tls_record record)
{
	static struct stream stream;

	stream.size = 0;
	stream_add(&stream, record);
	return receives(now_ns, &stream);
}

/* Up to the client's Finished, 10 ms after its hello. */
static void shake_hands13(void)
{
	static struct stream stream;

	stream.size = 0;
	tls_begin(&connection);
	sends_one(AT(0), client_hello);
	ADD_ALL(&stream, server_flight);
	cr_assert_eq(receives(AT(5), &stream), TLS_NOTHING);
	stream.size = 0;
	ADD_ALL(&stream, client_finished);
	cr_assert_eq(sends(AT(10), &stream), TLS_NOTHING);
}

static void shake_hands12(void)
{
	tls_begin(&connection);
	cr_assert_eq(sends_one(AT(0), client_hello), TLS_NOTHING);
	cr_assert_eq(receives_one(AT(5), (struct tls_record){ 22, 93 }), TLS_NOTHING);
	cr_assert_eq(sends_one(AT(6), (struct tls_record){ 22, 40 }), TLS_NOTHING);
	cr_assert_eq(receives_one(AT(7), (struct tls_record){ 22, 40 }), TLS_NOTHING);
}

Test(tls, in_12_the_first_data_of_the_server_is_the_answer)
{
	shake_hands12();
	cr_expect_eq(sends_one(AT(8), request), TLS_REQUEST);
	cr_expect_eq(receives_one(AT(9), answer), TLS_ANSWER);
}

Test(tls, in_13_a_handshake_is_no_answer)
{
	shake_hands13();
	cr_expect_eq(receives_one(AT(11), ticket), TLS_NOTHING);
	cr_expect_not(tls_has_one_ticket(&connection));
	cr_expect_eq(receives_one(AT(2000), answer), TLS_NOTHING);
}

Test(tls, in_13_up_to_four_records_of_one_length_are_tickets)
{
	for (int tickets = 0; tickets <= 4; tickets++) {
		shake_hands13();
		cr_assert_eq(sends_one(AT(11), request), TLS_REQUEST);
		for (int i = 0; i < tickets; i++)
			cr_assert_eq(receives_one(AT(12), ticket), TLS_NOTHING, "%d", i);
		cr_expect_eq(tls_has_one_ticket(&connection), tickets == 1);
		cr_expect_eq(receives_one(AT(2011), answer), TLS_ANSWER);
	}
}

Test(tls, the_fifth_record_is_the_answer)
{
	shake_hands13();
	sends_one(AT(11), request);
	for (int i = 0; i < TLS_TICKETS; i++)
		cr_assert_eq(receives_one(AT(12), ticket), TLS_NOTHING);
	cr_expect_eq(receives_one(AT(12), ticket), TLS_ANSWER);
}

Test(tls, a_record_of_another_length_is_the_answer)
{
	shake_hands13();
	sends_one(AT(11), request);
	cr_assert_eq(receives_one(AT(12), ticket), TLS_NOTHING);
	cr_expect_eq(receives_one(AT(12), answer), TLS_ANSWER);
}

Test(tls, a_record_of_2_kib_is_the_answer)
{
	shake_hands13();
	sends_one(AT(11), request);
	cr_expect_eq(receives_one(AT(12), (struct tls_record){ 23, 2048 }), TLS_ANSWER);
	shake_hands13();
	sends_one(AT(11), request);
	cr_expect_eq(receives_one(AT(12), (struct tls_record){ 23, 2047 }), TLS_NOTHING);
}

Test(tls, tickets_come_within_60_ms_of_the_last_data_sent)
{
	shake_hands13();
	sends_one(AT(11), request);
	cr_expect_eq(receives_one(AT(71), ticket), TLS_NOTHING);
	cr_expect_eq(receives_one(AT(71) + 1, ticket), TLS_ANSWER);
	shake_hands13();
	sends_one(AT(11), request);
	sends_one(AT(100), request);
	cr_expect_eq(receives_one(AT(160), ticket), TLS_NOTHING);
}

Test(tls, tickets_come_within_four_round_trips_of_the_handshake)
{
	static struct stream stream;

	tls_begin(&connection);
	sends_one(AT(0), client_hello);
	ADD_ALL(&stream, server_flight);
	receives(AT(99), &stream);
	sends_one(AT(100), client_finished[1]);
	sends_one(AT(100), request);
	cr_expect_eq(receives_one(AT(500), ticket), TLS_NOTHING);
	cr_expect_eq(receives_one(AT(500) + 1, ticket), TLS_ANSWER);
}

Test(tls, close_notify_and_alerts_neither_ask_nor_answer)
{
	static const struct tls_record quiet[] = { { 23, 19 }, { 23, 35 }, { 21, 26 }, { 21, 2 },
		{ 22, 100 }, { 20, 1 } };

	shake_hands13();
	sends_one(AT(11), request);
	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		cr_expect_eq(sends_one(AT(12), quiet[i]), i < 4 ? TLS_FAREWELL : TLS_NOTHING);
		cr_expect_eq(receives_one(AT(1000), quiet[i]), TLS_NOTHING);
	}
	cr_expect_not(tls_has_one_ticket(&connection));
	cr_expect_eq(receives_one(AT(1000), answer), TLS_ANSWER);
}

Test(tls, close_notify_after_finished_is_no_request)
{
	shake_hands13();
	cr_expect_eq(sends_one(AT(11), farewell), TLS_FAREWELL);
	cr_expect_eq(receives_one(AT(1000), answer), TLS_NOTHING);
}

Test(tls, sending_close_notify_does_not_prolong_the_time_of_tickets)
{
	shake_hands13();
	sends_one(AT(11), request);
	sends_one(AT(100), farewell);
	cr_expect_eq(receives_one(AT(101), ticket), TLS_ANSWER);
}

Test(tls, after_an_answer_no_record_is_a_ticket)
{
	static struct stream stream;
	struct iovec vector = { stream.bytes, 0 };

	shake_hands13();
	sends_one(AT(11), request);
	stream_add(&stream, ticket);
	vector.iov_len = stream.size;
	cr_expect_eq(tls_received(&connection, (struct bytes){&vector, 1}, stream.size, false,
				     false, AT(12)),
			TLS_ANSWER);
}

Test(tls, a_peek_remembers_nothing)
{
	static struct stream stream;
	struct iovec vector = { stream.bytes, 0 };

	shake_hands13();
	sends_one(AT(11), request);
	stream_add(&stream, ticket);
	vector.iov_len = stream.size;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(tls_received(&connection, (struct bytes){&vector, 1}, stream.size,
					     true, true, AT(12)),
				TLS_NOTHING);
	cr_expect_not(tls_has_one_ticket(&connection));
	cr_expect_eq(receives_one(AT(12), ticket), TLS_NOTHING);
	cr_expect(tls_has_one_ticket(&connection));
}

Test(tls, the_answer_is_seen_with_the_last_byte_of_its_header_and_not_before)
{
	static struct stream stream;
	struct iovec vector;

	stream_add(&stream, answer);
	for (size_t cut = 1; cut < 5; cut++) {
		shake_hands12();
		sends_one(AT(8), request);
		vector = (struct iovec){ stream.bytes, cut };
		cr_expect_eq(tls_received(&connection, (struct bytes){&vector, 1}, cut, true, false,
					     AT(9)),
				TLS_NOTHING);
		vector = (struct iovec){ stream.bytes + cut, 5 - cut };
		cr_expect_eq(tls_received(&connection, (struct bytes){ &vector, 1 }, 5 - cut, true,
				false, AT(9)), TLS_ANSWER);
	}
}

Test(tls, a_header_may_lie_across_vectors_and_only_what_was_moved_is_read)
{
	static struct stream stream;
	struct iovec vectors[7];

	stream_add(&stream, request);
	shake_hands12();
	for (size_t i = 0; i < 7; i++)
		vectors[i] = (struct iovec){ stream.bytes + i, i == 6 ? stream.size - 6 : 1 };
	cr_expect_eq(tls_sent(&connection, (struct bytes){ vectors, 7 }, 4, AT(8)), TLS_NOTHING);
	cr_expect_eq(tls_sent(&connection, (struct bytes){vectors + 4, 3}, 1, AT(8)), TLS_REQUEST);
}

Test(tls, a_look_at_what_will_be_sent_changes_nothing)
{
	static struct stream stream;
	struct iovec vector = { stream.bytes, 0 };
	struct tls before;

	stream_add(&stream, farewell);
	stream_add(&stream, request);
	shake_hands12();
	before = connection;
	vector.iov_len = 24;
	cr_expect_eq(tls_will_send(&connection, (struct bytes){ &vector, 1 }), TLS_NOTHING);
	vector.iov_len = 28;
	cr_expect_eq(tls_will_send(&connection, (struct bytes){ &vector, 1 }), TLS_NOTHING);
	vector.iov_len = 29;
	cr_expect_eq(tls_will_send(&connection, (struct bytes){ &vector, 1 }), TLS_REQUEST);
	cr_expect(memcmp(&before, &connection, sizeof(before)) == 0);
}

Test(tls, what_is_no_tls_or_out_of_sight_is_followed_no_longer)
{
	static char http[] = "HTTP/1.1 400 Bad Request\r\n";
	struct iovec vector = { http, sizeof(http) - 1 };
	struct bytes bytes = { &vector, 1 }, hidden = { 0 };

	shake_hands12();
	cr_expect_eq(tls_received(&connection, bytes, 10, true, false, AT(9)), TLS_BROKEN);
	cr_expect_eq(tls_sent(&connection, bytes, 10, AT(9)), TLS_BROKEN);
	cr_expect_eq(tls_will_send(&connection, hidden), TLS_BROKEN);
	cr_expect_eq(tls_sent(&connection, hidden, 10, AT(9)), TLS_BROKEN);
	cr_expect_eq(tls_received(&connection, hidden, 10, true, false, AT(9)), TLS_BROKEN);
}
