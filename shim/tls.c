/* SPDX-License-Identifier: MIT */
#include "shim/tls.h"

#include "core/clock.h"

#define HEADER_SIZE 5
#define RECORD_SIZE_MAX (16384 + 2048)
#define NS_PER_MS 1000000ull

enum state {
	SERVER_FIRST = 1 << 0, /* the server sent type 23 before the client did: TLS 1.3 */
	CLIENT_SPOKE = 1 << 1, /* the client sent type 23 */
	REQUESTED = 1 << 2,    /* and one that was not Finished */
	SERVER_CHANGED = 1 << 3, /* the server changed its cipher: in 1.2 its last word but one */
};

/* The same, of a send that is under way: its answer may be read before it returns. */
#define FORESEEN_SHIFT 4

/* A reader's word: inside a record the bytes of it still to come; inside a header, above 16 bits
 * how much of the header came, below them its type and the high byte of its length. */
static uint32_t header_word(unsigned int size, uint8_t type, uint8_t length_high)
{
	return size << 16 | (uint32_t)type << 8 | length_high;
}

static void skip_body(struct tls_reader *reader, const uint8_t **bytes, size_t *size)
{
	size_t skipped = reader->word < *size ? reader->word : *size;

	if (skipped == 0)
		return;
	*bytes += skipped;
	*size -= skipped;
	reader->word -= (uint32_t)skipped;
}

bool tls_next(struct tls_reader *reader, const uint8_t **bytes, size_t *size,
		struct tls_record *ret)
{
	unsigned int header_size;
	uint8_t type, length_high, byte;

	if (reader->word <= UINT16_MAX)
		skip_body(reader, bytes, size);
	header_size = reader->word >> 16;
	type = (uint8_t)(reader->word >> 8);
	length_high = (uint8_t)reader->word;

	while (*size > 0) {
		byte = *(*bytes)++;
		--*size;
		if (header_size == 0)
			type = byte;
		else if (header_size == 3)
			length_high = byte;
		if (++header_size < HEADER_SIZE)
			continue;
		*ret = (struct tls_record){ type, (uint16_t)(length_high << 8 | byte) };
		reader->word = ret->length;
		return true;
	}
	if (header_size > 0)
		reader->word = header_word(header_size, type, length_high);
	return false;
}

bool tls_record_is_plausible(struct tls_record record)
{
	return record.type >= 20 && record.type <= 24 && record.length <= RECORD_SIZE_MAX;
}

/* Is it close_notify, as far as one can tell without the keys? */
static bool is_farewell(struct tls_record record)
{
	return record.type == TLS_APPLICATION && (record.length == 19 || record.length == 35);
}

static bool record_is_data(struct tls_record record)
{
	return record.type == TLS_APPLICATION && !is_farewell(record);
}

/* Where a walk over the vectors of a call stands. */
struct walk {
	struct bytes rest;
	size_t size; /* bytes still to be looked at */
	const uint8_t *at;
	size_t left; /* of the current vector */
};

static struct walk walk_begin(struct bytes bytes, size_t size)
{
	return (struct walk){ .rest = bytes, .size = size };
}

static bool walk_next(struct walk *walk, struct tls_reader *reader, struct tls_record *ret)
{
	while (!tls_next(reader, &walk->at, &walk->left, ret)) {
		if (walk->rest.count == 0 || walk->size == 0)
			return false;
		walk->at = walk->rest.vectors->iov_base;
		walk->left = walk->rest.vectors->iov_len;
		if (walk->left > walk->size)
			walk->left = walk->size;
		walk->size -= walk->left;
		walk->rest.vectors++;
		walk->rest.count--;
	}
	return true;
}

void tls_begin(struct tls *tls)
{
	atomic_store_explicit(&tls->sent_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->sent, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->received, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->ticket_length, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->round_trip_ms, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->ticket_count, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->ticket_count_before, 0, memory_order_relaxed);
	atomic_store_explicit(&tls->state, 0, memory_order_relaxed);
}

enum tls_sight tls_will_send(const struct tls *tls, struct bytes bytes)
{
	struct tls_reader reader = { atomic_load_explicit(&tls->sent, memory_order_relaxed) };
	struct walk walk = walk_begin(bytes, SIZE_MAX);
	struct tls_record record;

	if (!bytes.vectors)
		return TLS_BROKEN;
	while (walk_next(&walk, &reader, &record)) {
		if (!tls_record_is_plausible(record))
			return TLS_BROKEN;
		if (record_is_data(record))
			return TLS_REQUEST;
	}
	return TLS_NOTHING;
}

/* The client's record of type 23. In 1.3 the first one is Finished. */
static enum tls_sight client_data(uint8_t *state, struct tls_record record)
{
	if (!(*state & CLIENT_SPOKE) && (*state & SERVER_FIRST)) {
		*state |= CLIENT_SPOKE;
		return TLS_NOTHING;
	}
	/* A first request of 18 bytes is as long as a padded close_notify. With no request before
	 * it, taking either for a request does no harm: the connection is new, and closing ends it
	 * alike. */
	if (is_farewell(record) && ((*state & REQUESTED) || record.length == 19))
		return *state & SERVER_FIRST ? TLS_FAREWELL : TLS_NOTHING;
	*state |= CLIENT_SPOKE | REQUESTED;
	return TLS_REQUEST;
}

static enum tls_sight client_record(uint8_t *state, struct tls_record record)
{
	if (record.type == TLS_ALERT)
		return TLS_FAREWELL;
	return record.type == TLS_APPLICATION ? client_data(state, record) : TLS_NOTHING;
}

/* What the first `size` of these bytes make of `reader` and `state`. */
static enum tls_sight client_bytes(struct tls_reader *reader, uint8_t *state, struct bytes bytes,
		size_t size, bool *ret_has_data)
{
	struct walk walk = walk_begin(bytes, size);
	enum tls_sight sight = TLS_NOTHING;
	struct tls_record record;

	if (!bytes.vectors)
		return TLS_BROKEN;
	while (walk_next(&walk, reader, &record)) {
		uint8_t before = *state;
		enum tls_sight one;

		if (!tls_record_is_plausible(record))
			return TLS_BROKEN;
		one = client_record(state, record);
		if (one != TLS_NOTHING)
			sight = one;
		*ret_has_data |= one == TLS_REQUEST || *state != before;
	}
	return sight;
}

void tls_foresee(struct tls *tls, struct bytes bytes, uint64_t now_ns)
{
	struct tls_reader reader = { atomic_load_explicit(&tls->sent, memory_order_relaxed) };
	uint8_t before = atomic_load_explicit(&tls->state, memory_order_relaxed), state = before;
	bool has_data = false;

	client_bytes(&reader, &state, bytes, SIZE_MAX, &has_data);
	if (has_data || atomic_load_explicit(&tls->sent_ns, memory_order_relaxed) == 0)
		atomic_store_explicit(&tls->sent_ns, now_ns, memory_order_relaxed);
	if (has_data)
		atomic_store_explicit(&tls->ticket_count_before,
				atomic_load_explicit(&tls->ticket_count, memory_order_relaxed),
				memory_order_relaxed);
	if (state != before)
		atomic_fetch_or_explicit(&tls->state,
				(uint8_t)((state & ~before) << FORESEEN_SHIFT),
				memory_order_relaxed);
}

void tls_sent_nothing(struct tls *tls)
{
	uint8_t foreseen = (CLIENT_SPOKE | REQUESTED) << FORESEEN_SHIFT;

	if (atomic_load_explicit(&tls->state, memory_order_relaxed) & foreseen)
		atomic_fetch_and_explicit(&tls->state, (uint8_t)~foreseen, memory_order_relaxed);
}

enum tls_sight tls_sent(struct tls *tls, struct bytes bytes, size_t size, uint64_t now_ns)
{
	struct tls_reader reader = { atomic_load_explicit(&tls->sent, memory_order_relaxed) };
	uint8_t before = atomic_load_explicit(&tls->state, memory_order_relaxed), state = before;
	bool has_data = false;
	enum tls_sight sight = client_bytes(&reader, &state, bytes, size, &has_data);

	if (has_data || atomic_load_explicit(&tls->sent_ns, memory_order_relaxed) == 0)
		atomic_store_explicit(&tls->sent_ns, now_ns, memory_order_relaxed);
	if (state != before)
		atomic_fetch_or_explicit(&tls->state, state, memory_order_relaxed);
	tls_sent_nothing(tls);
	if (sight != TLS_BROKEN)
		atomic_store_explicit(&tls->sent, reader.word, memory_order_relaxed);
	return sight;
}

/* What is known of the server's side while some bytes of it are looked at. */
struct server {
	uint16_t ticket_length;
	uint8_t ticket_count;
	uint8_t state;
	bool may_be_tickets;
	bool is_soon;
};

static bool record_is_ticket(const struct server *server, struct tls_record record)
{
	return server->may_be_tickets && (server->state & SERVER_FIRST) && server->is_soon &&
		record.length < TLS_TICKET_SIZE && server->ticket_count < TLS_TICKETS &&
		(server->ticket_count == 0 || record.length == server->ticket_length);
}

static enum tls_sight server_data(struct server *server, struct tls_record record)
{
	if (!(server->state & CLIENT_SPOKE)) {
		server->state |= SERVER_FIRST;
		return TLS_NOTHING;
	}
	if (!(server->state & REQUESTED) || !record_is_data(record))
		return TLS_NOTHING;
	if (!record_is_ticket(server, record))
		return TLS_ANSWER;
	server->ticket_length = record.length;
	server->ticket_count++;
	return TLS_NOTHING;
}

static void round_trip_measure(struct tls *tls, uint64_t now_ns)
{
	uint64_t began_ns = atomic_load_explicit(&tls->sent_ns, memory_order_relaxed);
	uint64_t ms = clock_elapsed_ns(began_ns, now_ns) / NS_PER_MS + 1;

	atomic_store_explicit(&tls->round_trip_ms, ms < UINT16_MAX ? (uint16_t)ms : UINT16_MAX,
		memory_order_relaxed);
}

/* Within the time in which tickets come: 60 ms, or four round trips of the handshake. */
static bool is_soon(const struct tls *tls, uint64_t now_ns)
{
	uint64_t sent_ns = atomic_load_explicit(&tls->sent_ns, memory_order_relaxed);
	uint64_t limit_ns = 4 * NS_PER_MS *
		atomic_load_explicit(&tls->round_trip_ms, memory_order_relaxed);

	if (limit_ns < TLS_TICKET_NS)
		limit_ns = TLS_TICKET_NS;
	return clock_elapsed_ns(sent_ns, now_ns) <= limit_ns;
}

static struct server server_load(const struct tls *tls, bool may_be_tickets, uint64_t now_ns)
{
	uint8_t state = atomic_load_explicit(&tls->state, memory_order_relaxed);

	return (struct server){
		.ticket_length = atomic_load_explicit(&tls->ticket_length, memory_order_relaxed),
		.ticket_count = atomic_load_explicit(&tls->ticket_count, memory_order_relaxed),
		.state = state | state >> FORESEEN_SHIFT,
		.may_be_tickets = may_be_tickets,
		.is_soon = may_be_tickets && is_soon(tls, now_ns),
	};
}

static void server_store(struct tls *tls, const struct server *server, uint64_t now_ns)
{
	uint8_t seen = server->state & (SERVER_FIRST | SERVER_CHANGED);

	if (atomic_load_explicit(&tls->round_trip_ms, memory_order_relaxed) == 0)
		round_trip_measure(tls, now_ns);
	if (seen & ~atomic_load_explicit(&tls->state, memory_order_relaxed))
		atomic_fetch_or_explicit(&tls->state, seen, memory_order_relaxed);
	atomic_store_explicit(&tls->ticket_length, server->ticket_length, memory_order_relaxed);
	atomic_store_explicit(&tls->ticket_count, server->ticket_count, memory_order_relaxed);
}

enum tls_sight tls_received(struct tls *tls, struct bytes bytes, size_t size, bool may_be_tickets,
		bool is_peek, uint64_t now_ns)
{
	struct tls_reader reader = { atomic_load_explicit(&tls->received, memory_order_relaxed) };
	struct server server = server_load(tls, may_be_tickets, now_ns);
	struct walk walk = walk_begin(bytes, size);
	enum tls_sight sight = TLS_NOTHING;
	struct tls_record record;

	if (!bytes.vectors)
		return TLS_BROKEN;
	while (walk_next(&walk, &reader, &record)) {
		if (!tls_record_is_plausible(record))
			return TLS_BROKEN;
		if (record.type == TLS_CHANGE_CIPHER)
			server.state |= SERVER_CHANGED;
		if (record.type == TLS_APPLICATION && server_data(&server, record) == TLS_ANSWER)
			sight = TLS_ANSWER;
	}
	if (is_peek)
		return sight;
	server_store(tls, &server, now_ns);
	atomic_store_explicit(&tls->received, reader.word, memory_order_relaxed);
	return sight;
}

enum tls_turn tls_turn(const struct tls *tls)
{
	uint8_t state = atomic_load_explicit(&tls->state, memory_order_relaxed);
	unsigned int since = (unsigned int)atomic_load_explicit(&tls->ticket_count,
			memory_order_relaxed) - atomic_load_explicit(&tls->ticket_count_before,
			memory_order_relaxed);

	state |= state >> FORESEEN_SHIFT;
	if (state & REQUESTED)
		return since == 1 ? TLS_TURN_UNKNOWN : TLS_TURN_OF_SERVER;
	if (state & CLIENT_SPOKE)
		return TLS_TURN_OF_CLIENT;
	return (state & (SERVER_FIRST | SERVER_CHANGED)) == SERVER_CHANGED ? TLS_TURN_OF_CLIENT :
		TLS_TURN_OF_SERVER;
}

bool tls_has_one_ticket(const struct tls *tls)
{
	return atomic_load_explicit(&tls->ticket_count, memory_order_relaxed) == 1;
}
