/* SPDX-License-Identifier: MIT */
#include "shim/fd_table.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "shim/raw.h"
#include "shim/reserve.h"

#define TABLE_SIZE_LEAST 65536u
#define TABLE_SIZE_MOST (1u << 20)
#define POOL_SIZE_LEAST 1024u
#define POOL_SIZE_MOST 65536u

struct fd_table fd_table;

/* The free list: count of pops (so that a slow popper cannot be fooled by a slot that went and came
 * back) above, index + 1 of the first free connection below. */
static _Atomic uint64_t free_head;
static _Atomic uint32_t used_from_start; /* connections [0, this) were given out at least once */
static _Atomic uint32_t named_end;       /* descriptors [0, this) ever named one, or a stream */

#define PIN 2u
#define PIN_AWAITED 1u
#define PIN_SPINS 200

bool fd_table_start(void)
{
	struct rlimit limit;
	uint32_t size = TABLE_SIZE_MOST, capacity;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max < size)
		size = limit.rlim_max < TABLE_SIZE_LEAST ? TABLE_SIZE_LEAST
							 : (uint32_t)limit.rlim_max;
	size = reserve_affordable(size, sizeof(*fd_table.entries), TABLE_SIZE_LEAST);
	capacity = reserve_affordable(POOL_SIZE_MOST, sizeof(struct connection), POOL_SIZE_LEAST);
	fd_table.entries = reserve(size * sizeof(*fd_table.entries));
	if (!fd_table.entries)
		return false;
	fd_table.connections = reserve(capacity * sizeof(struct connection));
	if (!fd_table.connections) {
		munmap(fd_table.entries, size * sizeof(*fd_table.entries));
		return false;
	}
	fd_table.capacity = capacity;
	fd_table.size = size;
	return true;
}

enum fd_kind fd_table_kind(int fd)
{
	uint32_t entry;

	if ((uint32_t)fd >= fd_table.size)
		return FD_OTHER;
	entry = atomic_load_explicit(&fd_table.entries[fd], memory_order_acquire);
	return entry < FD_CONNECTION ? (enum fd_kind)entry : FD_CONNECTION;
}

static uint32_t connection_index(const struct connection *connection)
{
	return (uint32_t)(connection - fd_table.connections);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

__attribute__((noinline)) static void pins_wait(struct connection *connection)
{
	uint32_t pins = PIN;

	for (int spin = 0; spin < PIN_SPINS && pins >= PIN; spin++) {
		pause_briefly();
		pins = atomic_load_explicit(&connection->pins, memory_order_seq_cst);
	}
	while (pins >= PIN) {
		/* Where it fails as the last pin is taken out, that is what was waited for. */
		if (!(pins & PIN_AWAITED) && !atomic_compare_exchange_weak_explicit(
				&connection->pins, &pins, pins | PIN_AWAITED,
				memory_order_seq_cst, memory_order_seq_cst))
			continue;
		raw_syscall(SYS_futex, (long)&connection->pins, FUTEX_WAIT_PRIVATE,
				pins | PIN_AWAITED, 0, 0, 0);
		pins = atomic_load_explicit(&connection->pins, memory_order_seq_cst);
	}
}

/* Something that named the connection is out of sight. seq_cst, as in all that orders names and
 * references against pins: who pins looks then whether it still is named, who takes the name away
 * looks then whether it is pinned. */
static void wait_until_unpinned(struct connection *connection)
{
	if (atomic_load_explicit(&connection->pins, memory_order_seq_cst) >= PIN)
		pins_wait(connection);
}

bool fd_table_pin(struct connection *connection)
{
	atomic_fetch_add_explicit(&connection->pins, PIN, memory_order_seq_cst);
	if (atomic_load_explicit(&connection->references, memory_order_seq_cst))
		return true;
	fd_table_unpin(connection);
	return false;
}

void fd_table_unpin(struct connection *connection)
{
	uint32_t pins = atomic_fetch_sub_explicit(&connection->pins, PIN, memory_order_seq_cst);

	if (pins != (PIN | PIN_AWAITED))
		return;
	pins = PIN_AWAITED;
	atomic_compare_exchange_strong_explicit(&connection->pins, &pins, 0, memory_order_relaxed,
			memory_order_relaxed);
	raw_syscall(SYS_futex, (long)&connection->pins, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
}

void fd_table_forget_pins(void)
{
	uint32_t count = atomic_load_explicit(&used_from_start, memory_order_acquire);

	for (uint32_t index = 0; index < count; index++)
		atomic_store_explicit(&fd_table.connections[index].pins, 0, memory_order_relaxed);
}

int fd_table_descriptor(const struct connection *connection)
{
	uint32_t entry = FD_CONNECTION + connection_index(connection);
	uint32_t end = atomic_load_explicit(&named_end, memory_order_acquire);
	uint32_t fd = (uint32_t)atomic_load_explicit(&connection->fd, memory_order_relaxed);

	if (fd < end && atomic_load_explicit(&fd_table.entries[fd], memory_order_seq_cst) == entry)
		return (int)fd;
	for (fd = 0; fd < end; fd++) {
		if (atomic_load_explicit(&fd_table.entries[fd], memory_order_seq_cst) == entry)
			return (int)fd;
	}
	return -1;
}

/* That descriptor will name a connection, or a stream. */
static void named(int fd)
{
	uint32_t end = atomic_load_explicit(&named_end, memory_order_relaxed);

	while (end <= (uint32_t)fd && !atomic_compare_exchange_weak_explicit(&named_end, &end,
			(uint32_t)fd + 1, memory_order_release, memory_order_relaxed))
		;
}

/* Takes one reference away; the connection where it was the last. */
static struct connection *release(uint32_t entry)
{
	struct connection *connection;
	bool is_last;

	if (entry < FD_CONNECTION)
		return NULL;
	connection = &fd_table.connections[entry - FD_CONNECTION];
	/* Also: who drops the last reference sees all that other descriptors' users did. */
	is_last = atomic_fetch_sub_explicit(&connection->references, 1, memory_order_seq_cst) == 1;
	wait_until_unpinned(connection);
	return is_last ? connection : NULL;
}

static struct connection *replace(int fd, uint32_t entry)
{
	return release(atomic_exchange_explicit(&fd_table.entries[fd], entry,
			memory_order_seq_cst));
}

struct connection *fd_table_set(int fd, enum fd_kind kind)
{
	if ((uint32_t)fd >= fd_table.size)
		return NULL;
	/* Most closes are of descriptors that nothing is known of: spare them the locked write. */
	if (atomic_load_explicit(&fd_table.entries[fd], memory_order_relaxed) == (uint32_t)kind)
		return NULL;
	if (kind == FD_STREAM || kind == FD_STREAM6)
		named(fd);
	return replace(fd, kind);
}

static struct connection *pool_pop(void)
{
	uint64_t head = atomic_load_explicit(&free_head, memory_order_acquire);
	uint32_t fresh;

	while ((uint32_t)head != 0) {
		struct connection *first = &fd_table.connections[(uint32_t)head - 1];
		uint64_t next = atomic_load_explicit(&first->next, memory_order_relaxed);

		if (atomic_compare_exchange_weak_explicit(&free_head, &head,
				((head >> 32) + 1) << 32 | next,
				memory_order_acquire, memory_order_acquire))
			return first;
	}
	fresh = atomic_load_explicit(&used_from_start, memory_order_relaxed);
	do {
		if (fresh >= fd_table.capacity)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&used_from_start, &fresh, fresh + 1,
			memory_order_relaxed, memory_order_relaxed));
	return &fd_table.connections[fresh];
}

void fd_table_free(struct connection *connection)
{
	uint64_t head = atomic_load_explicit(&free_head, memory_order_relaxed);

	atomic_fetch_add_explicit(&connection->generation, 1, memory_order_relaxed);
	do {
		atomic_store_explicit(&connection->next, (uint32_t)head, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&free_head, &head,
			(head >> 32) << 32 | (connection_index(connection) + 1),
			memory_order_release, memory_order_relaxed));
	atomic_fetch_sub_explicit(&fd_table.live, 1, memory_order_relaxed);
}

static void deadline_reset(struct deadline *deadline)
{
	atomic_store_explicit(&deadline->timeout_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->cookie, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->senders, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->knows_received, false, memory_order_relaxed);
	atomic_store_explicit(&deadline->received_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->is_pushing, false, memory_order_relaxed);
	atomic_store_explicit(&deadline->asked_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&deadline->acknowledged_bytes, 0, memory_order_relaxed);
}

/* A fresh one that nothing names yet. */
static struct connection *pool_take(int fd, enum fd_kind kind)
{
	struct connection *connection = pool_pop();

	if (!connection)
		return NULL;
	atomic_fetch_add_explicit(&fd_table.live, 1, memory_order_relaxed);
	atomic_store_explicit(&connection->permit, 0, memory_order_relaxed);
	atomic_store_explicit(&connection->call_place, 0, memory_order_relaxed);
	atomic_store_explicit(&connection->place, 0, memory_order_relaxed);
	connection->kind = kind == FD_STREAM6 || kind == FD_DATAGRAM ? kind : FD_STREAM;
	atomic_store_explicit(&connection->judge, 0, memory_order_relaxed);
	deadline_reset(&connection->deadline);
	connection->exchange = (struct exchange){ 0 };
	atomic_store_explicit(&connection->fd, fd, memory_order_relaxed);
	named(fd);
	/* release: who pins it and finds it in use finds it new. */
	atomic_store_explicit(&connection->references, 1, memory_order_release);
	return connection;
}

struct connection *fd_table_connect(int fd, struct connection **ret_stale)
{
	struct connection *connection;

	*ret_stale = NULL;
	if ((uint32_t)fd >= fd_table.size)
		return NULL;
	connection = pool_take(fd, fd_table_kind(fd));
	/* The exchange publishes it: acq_rel in replace(). */
	if (connection)
		*ret_stale = replace(fd, FD_CONNECTION + connection_index(connection));
	return connection;
}

struct connection *fd_table_adopt(int fd, const struct exchange *exchange)
{
	enum fd_kind kind = fd_table_kind(fd);
	struct connection *connection;
	uint32_t entry = kind;

	if (kind != FD_STREAM && kind != FD_STREAM6)
		return NULL;
	connection = pool_take(fd, kind);
	if (!connection)
		return NULL;
	connection->exchange = *exchange;
	/* Closed meanwhile, it may be another's, of which nothing is known. */
	if (atomic_compare_exchange_strong_explicit(&fd_table.entries[fd], &entry,
			    FD_CONNECTION + connection_index(connection), memory_order_seq_cst,
			    memory_order_relaxed))
		return connection;
	atomic_store_explicit(&connection->references, 0, memory_order_relaxed);
	fd_table_free(connection);
	return NULL;
}

uint32_t fd_table_end(void)
{
	return atomic_load_explicit(&named_end, memory_order_acquire);
}

/* One more reference, unless the last one is already gone. */
static bool retain(struct connection *connection)
{
	uint32_t references = atomic_load_explicit(&connection->references, memory_order_relaxed);

	do {
		if (references == 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&connection->references, &references,
			references + 1, memory_order_relaxed, memory_order_relaxed));
	return true;
}

struct connection *fd_table_copy(int fd, int copy)
{
	uint32_t entry = FD_OTHER;

	if ((uint32_t)copy >= fd_table.size || fd == copy)
		return NULL;
	if ((uint32_t)fd < fd_table.size)
		entry = atomic_load_explicit(&fd_table.entries[fd], memory_order_acquire);
	if (entry == FD_EPOLL || (entry >= FD_CONNECTION &&
			!retain(&fd_table.connections[entry - FD_CONNECTION])))
		entry = FD_OTHER;
	if (entry != FD_OTHER)
		named(copy);
	return replace(copy, entry);
}

uint32_t fd_table_take(int fd)
{
	uint32_t entry;

	if ((uint32_t)fd >= fd_table.size)
		return FD_OTHER;
	entry = atomic_load_explicit(&fd_table.entries[fd], memory_order_acquire);
	while (entry >= FD_CONNECTION) {
		if (!atomic_compare_exchange_weak_explicit(&fd_table.entries[fd], &entry, FD_OTHER,
				memory_order_seq_cst, memory_order_acquire))
			continue;
		wait_until_unpinned(&fd_table.connections[entry - FD_CONNECTION]);
		return entry;
	}
	return FD_OTHER;
}

struct connection *fd_table_put_back(int fd, uint32_t taken)
{
	uint32_t entry = FD_OTHER;

	if (atomic_compare_exchange_strong_explicit(&fd_table.entries[fd], &entry, taken,
			memory_order_acq_rel, memory_order_relaxed))
		return NULL;
	return release(taken);
}

struct connection *fd_table_drop(uint32_t taken)
{
	return release(taken);
}

struct connection *fd_table_at(uint32_t index)
{
	if (index >= atomic_load_explicit(&used_from_start, memory_order_acquire))
		return NULL;
	return &fd_table.connections[index];
}

void fd_table_each(void (*each)(struct connection *connection))
{
	uint32_t count = atomic_load_explicit(&used_from_start, memory_order_acquire);

	for (uint32_t index = 0; index < count; index++) {
		struct connection *connection = &fd_table.connections[index];

		if (atomic_load_explicit(&connection->references, memory_order_acquire))
			each(connection);
	}
}
