/* SPDX-License-Identifier: MIT */
/*
 * What each descriptor is: an array indexed by descriptor. One bounds check and one load decide
 * that a descriptor is not ours. Connections live in a pool and are shared by copies (dup); the
 * last descriptor to go ends them. Lock-free, async-signal-safe; memory is reserved once at start.
 */
#ifndef SHUNT_SHIM_FD_TABLE_H
#define SHUNT_SHIM_FD_TABLE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/circuit.h"
#include "core/config.h"
#include "core/place.h"
#include "shim/exchange.h"

/* Entries below FD_CONNECTION say what is known of a descriptor that has no connection. */
enum fd_kind {
	FD_OTHER,    /* closed, a file, another socket, or never seen being born: not guarded */
	FD_STREAM,   /* an IPv4 stream socket that no call of ours connected */
	FD_STREAM6,  /* the same, of IPv6 */
	FD_EPOLL,    /* an epoll set, seen while readiness may be held (shim/registration.h) */
	FD_DATAGRAM, /* of IPv4 or IPv6: faults alone ask for it */
	FD_CONNECTION
};

#define CONNECTION_LINE 64

/* Of the calls of one connection (shim/deadline.h). */
struct deadline {
	_Atomic uint64_t timeout_ns; /* of the rule; 0: its calls have none */
	_Atomic uint64_t cookie;     /* the socket's, by which to know it again; 0: not known */
	_Atomic uint16_t senders;    /* threads inside a send */
	/* What the peer had sent when the open call began, modulo 2^32; where that is known. */
	_Atomic bool knows_received;
	_Atomic uint32_t received_bytes;
	/* The timer thread's: what the kernel said last. */
	_Atomic bool is_pushing; /* not all that it took had reached the peer */
	_Atomic uint32_t acknowledged_bytes; /* modulo 2^32 */
	_Atomic uint64_t asked_ns;
};

/* One line of the cache holds what every call needs, for between two of them the kernel has thrown
 * it out; and none is two connections'. */
struct connection {
	/* How often it went back to the pool. */
	_Alignas(CONNECTION_LINE) _Atomic uint32_t generation;
	_Atomic uint32_t judge;      /* by which rule, counted in which cell: call_judge() */
	_Atomic uint64_t cell_hash;  /* of the cell's key: it may have been given away since */
	_Atomic uint64_t permit;     /* struct permit; of the open call, or else of the last */
	_Atomic place_t call_place;  /* what the open call holds of `concurrency` */
	struct exchange exchange;
	_Atomic place_t place;       /* what it holds itself of `connections` or the fallback */
	_Atomic uint32_t references; /* descriptors that name it */
	_Atomic uint32_t next;       /* in the pool's free list */
	_Atomic uint32_t pins;       /* those who want it to stay, above; somebody waits, bit 0 */
	_Atomic int fd;              /* one that named it */
	enum fd_kind kind;           /* FD_STREAM, STREAM6, DATAGRAM: what the descriptor was */
	struct deadline deadline;
};

static_assert(offsetof(struct connection, exchange.silence.established_ns) == CONNECTION_LINE,
		"a call needs no second line");

struct fd_table {
	_Atomic uint32_t *entries;
	uint32_t size; /* 0 until start: nothing is ours */
	uint32_t capacity;
	struct connection *connections;
	_Atomic uint32_t live; /* connections in use */
};

extern struct fd_table fd_table __attribute__((visibility("hidden")));

/* Reserves memory. False without it. */
bool fd_table_start(void);

/* The connection of a descriptor, or NULL. */
static inline struct connection *fd_table_find(int fd)
{
	uint32_t entry;

	if ((uint32_t)fd >= fd_table.size)
		return NULL;
	entry = atomic_load_explicit(&fd_table.entries[fd], memory_order_acquire);
	if (entry < FD_CONNECTION)
		return NULL;
	return &fd_table.connections[entry - FD_CONNECTION];
}

static inline uint32_t fd_table_generation(const struct connection *connection)
{
	return atomic_load_explicit(&connection->generation, memory_order_relaxed);
}

/* What is known; FD_CONNECTION for any connection, FD_OTHER past the table. */
enum fd_kind fd_table_kind(int fd);

/*
 * A descriptor was born or is known to be free again: whatever stood there is stale. Returns the
 * connection whose last reference that was, to be settled and then given to fd_table_free(), or
 * NULL.
 */
struct connection *fd_table_set(int fd, enum fd_kind kind);

/* A fresh zeroed connection as `fd`'s, with one reference; NULL when the pool is empty or fd is
 * past the table. *ret_stale as of fd_table_set(). */
struct connection *fd_table_connect(int fd, struct connection **ret_stale);

/* The same in place of a stream that no call of ours connected, with what is known of its exchange;
 * NULL as well where none stands there (any more). */
struct connection *fd_table_adopt(int fd, const struct exchange *exchange);

/* Descriptors from here on never named a connection or a stream. */
uint32_t fd_table_end(void);

/* `copy` became a copy of `fd` (dup): shares whatever stands there; of an epoll set nothing is
 * known by the copy's number yet. Returns as fd_table_set(). */
struct connection *fd_table_copy(int fd, int copy);

/* Takes fd's connection out of sight and keeps its reference, for a call that may replace it:
 * fd_table_put_back() or fd_table_drop() ends that. FD_OTHER where there is none. */
uint32_t fd_table_take(int fd);

/* The call failed: the connection stands at fd again, unless something else does by now. Both
 * return as fd_table_set(). */
struct connection *fd_table_put_back(int fd, uint32_t taken);
struct connection *fd_table_drop(uint32_t taken);

/* Back into the pool. */
void fd_table_free(struct connection *connection);

/*
 * Who acts on a connection from outside of a call on it pins it first. False: it has no descriptor.
 * True: until fd_table_unpin() no descriptor that names it is closed or replaced, for whoever would
 * waits in the function that takes it away here, and it does not go back to the pool. Not for a
 * thread whose signal handlers may run meanwhile: one could wait for its own pin.
 */
bool fd_table_pin(struct connection *connection);
void fd_table_unpin(struct connection *connection);

/* A descriptor that names a pinned connection, or -1. */
int fd_table_descriptor(const struct connection *connection);

/* The connection of that number in the pool, in use or not; NULL past the last that ever was. */
struct connection *fd_table_at(uint32_t index);

/* In a forked child: whoever pinned anything is not here. */
void fd_table_forget_pins(void);

/* Calls `each` for every connection that has a descriptor. */
void fd_table_each(void (*each)(struct connection *connection));

#endif
