/* SPDX-License-Identifier: MIT */
#include "shim/held_attempt.h"

#include <errno.h>
#include <string.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/inside.h"
#include "shim/own_call.h"
#include "shim/socket_wait.h"
#include "shim/vectors.h"

#define STEP_NS 20000000ull

void held_attempt_begin(struct slot *slot, uint64_t due_ns, int error)
{
	atomic_store_explicit(&slot->attempt_due_ns, due_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->attempt_error, error, memory_order_relaxed);
	slot_set(slot, error ? SLOT_HELD | SLOT_FAILS : SLOT_HELD);
}

void held_attempt_end(struct slot *slot)
{
	slot_clear(slot, SLOT_HELD | SLOT_FAILS | SLOT_MADE);
}

bool held_attempt_was_made(struct slot *slot)
{
	return atomic_fetch_and_explicit(&slot->flags, ~(uint32_t)SLOT_MADE, memory_order_acq_rel) &
			SLOT_MADE;
}

static bool is_ended(const struct connection *connection)
{
	const struct slot *slot = slot_of(connection);

	return exchange_has(&connection->exchange, EXCHANGE_TIMED_OUT) ||
			(slot && slot_has(slot, SLOT_SHUT));
}

/* What wakes it is that both sides are shut; once they are, only looking tells. */
bool held_sleep(const struct connection *connection, int fd, uint64_t until_ns,
		bool has_own_time)
{
	uint64_t now_ns = clock_now_ns();

	while (now_ns < until_ns && !is_ended(connection)) {
		uint64_t step_ns = now_ns + STEP_NS;

		if (step_ns > until_ns)
			step_ns = until_ns;
		if (!socket_sleep(fd, until_ns, has_own_time) || (!is_ended(connection) &&
					!socket_sleep(-1, step_ns, has_own_time)))
			return false;
		now_ns = clock_now_ns();
	}
	return true;
}

uint64_t held_attempt_ns(const struct slot *slot, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&slot->attempt_due_ns, memory_order_relaxed);

	/* Under a filter nothing is given back when it is due: all of it is due. */
	return slot_has(slot, SLOT_HELD) && due_ns > now_ns && !own_calls_are_forbidden() ? due_ns
											  : 0;
}

int held_attempt_error(struct slot *slot, uint64_t now_ns)
{
	int error = 0;

	if (!slot_has(slot, SLOT_HELD) || held_attempt_ns(slot, now_ns))
		return 0;
	if (slot_has(slot, SLOT_FAILS))
		error = atomic_exchange_explicit(&slot->attempt_error, 0, memory_order_relaxed);
	slot_clear(slot, SLOT_HELD | SLOT_FAILS);
	return error;
}

/* The slot of an attempt that is or was held, or NULL. */
static struct slot *held_slot(int fd)
{
	struct connection *connection = fd_table_find(fd);
	struct slot *slot = connection ? slot_of(connection) : NULL;

	if (!slot || !slot_is_valid(slot, connection) || !slot_has(slot, SLOT_HELD) ||
			process_is_vfork_child())
		return NULL;
	return slot;
}

static bool asks_for_error(int level, int option, const void *value, const socklen_t *size)
{
	return level == SOL_SOCKET && option == SO_ERROR && pointer_may_be_read(value) &&
	       pointer_may_be_read(size) && *size >= sizeof(int);
}

int held_attempt_getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
	struct slot *slot = asks_for_error(level, option, value, size) ? held_slot(fd) : NULL;
	uint64_t now_ns = slot ? clock_now_ns() : 0;
	int error = 0;

	if (!slot)
		return below()->getsockopt(fd, level, option, value, size);
	if (!held_attempt_ns(slot, now_ns)) {
		error = held_attempt_error(slot, now_ns);
		if (!error)
			return below()->getsockopt(fd, level, option, value, size);
	}
	memcpy(value, &error, sizeof(error));
	*size = sizeof(error);
	return 0;
}

int held_attempt_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
	struct slot *slot = held_slot(fd);

	if (!slot || !held_attempt_ns(slot, clock_now_ns()))
		return below()->getpeername(fd, address, length);
	errno = ENOTCONN;
	return -1;
}
