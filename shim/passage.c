/* SPDX-License-Identifier: MIT */
#include "shim/passage.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "shim/barrier.h"
#include "shim/inject_choose.h"
#include "shim/inside.h"
#include "shim/runtime.h"
#include "shim/socket_ask.h"

#define PIECES 16
#define CORRUPTED_SIZE 256

/* Of the program's vectors those bytes that are to pass now. */
struct pieces {
	struct iovec vectors[PIECES];
	size_t count;
	size_t size;
};

struct slot *passage_find(int fd, struct connection **ret_connection)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot;

	if (!connection || connection->kind == FD_DATAGRAM || process_is_vfork_child() ||
			exchange_has(&connection->exchange, EXCHANGE_CUT | EXCHANGE_TIMED_OUT))
		return NULL;
	slot = slot_of(connection);
	if (!slot || !inject_concerns(slot, connection, fd))
		return NULL;
	*ret_connection = connection;
	return slot;
}

static void pieces_cut(struct pieces *pieces, const struct move *move, size_t skip, size_t limit)
{
	pieces->count = 0;
	pieces->size = 0;
	for (size_t i = 0; i < move->count && pieces->count < PIECES && limit; i++) {
		struct iovec vector = move->vectors[i];
		size_t skipped = skip < vector.iov_len ? skip : vector.iov_len;

		skip -= skipped;
		vector.iov_base = (char *)vector.iov_base + skipped;
		vector.iov_len -= skipped;
		if (vector.iov_len > limit)
			vector.iov_len = limit;
		if (!vector.iov_len)
			continue;
		limit -= vector.iov_len;
		pieces->size += vector.iov_len;
		pieces->vectors[pieces->count++] = vector;
	}
}

static void change(const struct pieces *pieces, size_t at, unsigned char by)
{
	for (size_t part = 0; part < pieces->count; part++) {
		const struct iovec *vector = &pieces->vectors[part];

		if (at < vector->iov_len) {
			((unsigned char *)vector->iov_base)[at] ^= by;
			return;
		}
		at -= vector->iov_len;
	}
}

/* The same bytes in every run, as far as the data is the same: one in each of so many stretches of
 * it, so that none is changed twice. */
static void corrupt(const struct strike *strike, const struct slot *slot,
		const struct pieces *pieces, size_t size)
{
	const struct fault *fault = strike_fault(strike);
	struct fault_unit unit = {
		strike_number(strike),
		atomic_load_explicit(&slot->call, memory_order_relaxed),
	};

	size_t count = strike_value(strike) < size ? (size_t)strike_value(strike) : size;

	for (size_t i = 0; i < count; i++) {
		uint64_t number = fault_number(fault, runtime.seed, unit, (uint32_t)i);
		size_t from = i * size / count, to = (i + 1) * size / count;

		change(pieces, from + (size_t)(number >> 8) % (to - from),
				(unsigned char)(1 + number % 255));
	}
}

/* The program's own data is not ours to change: a copy is sent, of so much as there is room for. */
__attribute__((noinline)) static ssize_t send_corrupted(const struct move *move,
		struct crossing *crossing, const struct pieces *pieces)
{
	unsigned char copy[CORRUPTED_SIZE];
	struct pieces changed = { .count = 1 };
	size_t size = 0;

	for (size_t i = 0; i < pieces->count && size < sizeof(copy); i++) {
		const struct iovec *vector = &pieces->vectors[i];
		size_t part = sizeof(copy) - size;

		part = vector->iov_len < part ? vector->iov_len : part;
		memcpy(copy + size, vector->iov_base, part);
		size += part;
	}
	if (size < crossing->limit) {
		crossing->limit = size;
		crossing->goes_on = true;
	}
	changed.vectors[0] = (struct iovec){ copy, size };
	if (inject_strikes(&crossing->sight, crossing->corrupts, STRIKE_DONE))
		corrupt(crossing->corrupts, crossing->sight.slot, &changed, size);
	return move->make(move, changed.vectors, 1, size);
}

static ssize_t make_cut(const struct move *move, struct crossing *crossing, size_t done)
{
	struct pieces pieces;
	ssize_t result;

	pieces_cut(&pieces, move, done, crossing->limit);
	if (!pieces.count)
		return move->make(move, move->vectors, move->count, move->size);
	if (pieces.size < crossing->limit) {
		crossing->limit = pieces.size;
		crossing->goes_on = crossing_moves_all(crossing);
	}
	if (crossing->corrupts && move->direction == FAULT_OUT)
		return send_corrupted(move, crossing, &pieces);
	result = move->make(move, pieces.vectors, pieces.count, pieces.size);
	if (crossing->corrupts && result > 0 &&
			inject_strikes(&crossing->sight, crossing->corrupts, STRIKE_DONE))
		corrupt(crossing->corrupts, crossing->sight.slot, &pieces, (size_t)result);
	return result;
}

static ssize_t make(const struct move *move, struct crossing *crossing, size_t done)
{
	if (!move->count)
		return move->make(move, NULL, 0, crossing->limit);
	if (!done && crossing->limit == move->size && !crossing->corrupts)
		return move->make(move, move->vectors, move->count, move->size);
	return make_cut(move, crossing, done);
}

ssize_t passage_move(const struct move *move, struct connection *connection, struct slot *slot)
{
	struct crossing crossing = {
		.sight = { .connection = connection, .slot = slot, .fd = move->fd },
		.direction = move->direction,
		.flags = move->flags,
		.is_in_sight = move->count,
	};
	uint32_t generation = fd_table_generation(connection);
	int kept = errno;
	size_t done = 0;
	ssize_t result;

	crossing.sight.is_blocking = !(move->flags & MSG_DONTWAIT) && socket_is_blocking(move->fd);
	do {
		crossing.size = move->size - done;
		if (!barrier_lets(&crossing)) {
			result = crossing.answer;
			break;
		}
		/* Closed while this thread slept: by that number another may go now. */
		if (fd_table_find(move->fd) != connection ||
				fd_table_generation(connection) != generation) {
			errno = EBADF;
			result = -1;
			break;
		}
		result = barrier_passed(&crossing, make(move, &crossing, done));
		if (result <= 0)
			break;
		done += (size_t)result;
	} while (crossing.goes_on && (size_t)result == crossing.limit && done < move->size);
	if (!done && result < 0)
		return -1;
	errno = kept;
	return done ? (ssize_t)done : 0;
}
