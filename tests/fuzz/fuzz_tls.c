/* SPDX-License-Identifier: MIT */
/* A TLS stream gives the same records in one piece and in many, and is read nowhere but where it
 * lies. The first bytes choose the pieces, the rest is the stream. */
#include <string.h>

#include "shim/tls.h"
#include "tests/fuzz/fuzz.h"

#define RECORDS_MAX 16384
#define CUTS_SIZE 8
#define NOW_NS 1000000000000ull

struct reading {
	struct tls_record records[RECORDS_MAX];
	size_t count;
	struct tls_reader reader;
};

static struct reading whole, pieces;

/* In memory of exactly that size, so that a sanitizer sees a step outside. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	FUZZ_EXPECT(copy);
	if (size)
		memcpy(copy, bytes, size);
	return copy;
}

static void read_piece(struct reading *reading, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = exact_copy(bytes, size);
	const uint8_t *at = copy;
	size_t left = size;

	while (reading->count < RECORDS_MAX && tls_next(&reading->reader, &at, &left,
			&reading->records[reading->count])) {
		FUZZ_EXPECT(at + left == copy + size);
		reading->count++;
	}
	FUZZ_EXPECT(reading->count == RECORDS_MAX || left == 0);
	free(copy);
}

static size_t piece_size(const uint8_t *cuts, size_t i, size_t left)
{
	size_t size = 1u + cuts[i % CUTS_SIZE] % 64u;

	return size < left ? size : left;
}

static void feed(struct tls *tls, uint8_t choice, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = exact_copy(bytes, size);
	struct iovec vectors[2] = { { copy, size / 2 }, { copy + size / 2, size - size / 2 } };
	struct bytes both = { vectors, 2 };
	uint64_t now_ns = NOW_NS + (uint64_t)choice * 1000000u;

	if (choice & 1)
		tls_sent(tls, both, size, now_ns);
	else
		tls_received(tls, both, size, choice & 2, choice & 4, now_ns);
	tls_will_send(tls, both);
	FUZZ_EXPECT(atomic_load(&tls->ticket_count) <= TLS_TICKETS);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls tls = { 0 };
	const uint8_t *cuts = data;

	if (size < CUTS_SIZE)
		return 0;
	data += CUTS_SIZE;
	size -= CUTS_SIZE;
	whole.count = pieces.count = 0;
	whole.reader = pieces.reader = (struct tls_reader){ 0 };
	read_piece(&whole, data, size);
	for (size_t at = 0, i = 0; at < size; i++) {
		size_t piece = piece_size(cuts, i, size - at);

		read_piece(&pieces, data + at, piece);
		feed(&tls, cuts[i % CUTS_SIZE], data + at, piece);
		at += piece;
	}
	FUZZ_EXPECT(whole.count == pieces.count);
	for (size_t i = 0; i < whole.count; i++)
		FUZZ_EXPECT(whole.records[i].type == pieces.records[i].type &&
				whole.records[i].length == pieces.records[i].length);
	FUZZ_EXPECT(whole.count == RECORDS_MAX || whole.reader.word == pieces.reader.word);
	return 0;
}
