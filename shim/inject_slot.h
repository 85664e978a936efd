/* SPDX-License-Identifier: MIT */
/*
 * What is known of a connection under faults: which rules it falls under and its number in each,
 * what was chosen for its unit, what has moved, what is held until when. A slot for each place of
 * fd_table's pool, of which only those in use cost memory; it is the connection's as long as the
 * generations agree. All fields are atomics: threads may share a connection. Async-signal-safe.
 */
#ifndef SHUNT_SHIM_INJECT_SLOT_H
#define SHUNT_SHIM_INJECT_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/fault_rules.h"
#include "shim/fd_table.h"
#include "shim/pace.h"

enum strike_state {
	STRIKE_IDLE,  /* not chosen for this unit */
	STRIKE_ARMED, /* chosen, and yet to be carried out */
	STRIKE_ON,    /* carried out, and goes on until the unit ends: rate, short */
	STRIKE_DONE
};

/* One rule on one connection. */
struct strike {
	_Atomic uint32_t state;
	_Atomic uint32_t rule;       /* fault_rule_at() */
	_Atomic uint32_t connection; /* its number, of this rule: strike_number() */
	_Atomic uint64_t value;      /* as it was chosen */
	_Atomic uint64_t moved;      /* bytes since the unit began, in the rule's direction */
	_Atomic uint32_t datagrams;  /* to and from the rule's endpoints, of a datagram socket */
	struct pace in, out;
};

enum slot_flag {
	SLOT_HELD = 1 << 0,     /* an attempt: the kernel is done with it, the program is not */
	SLOT_FAILS = 1 << 1,    /* when it is let go, it fails with attempt_error */
	SLOT_RESET = 1 << 2,    /* dead: ECONNRESET, or what `error` says, until it is closed */
	SLOT_CLOSED = 1 << 3,   /* end of stream until it is closed */
	SLOT_ANSWERS = 1 << 4,  /* this call's answer is there: answer_due_ns is, or will be, set */
	SLOT_LINGERS = 1 << 5,  /* the end of stream was seen: end_due_ns */
	SLOT_WAITS = 1 << 6,    /* in_until_ns, out_until_ns */
	SLOT_UNSENT = 1 << 7,   /* the last send was turned back: its call has yet to begin */
	SLOT_INHERITED = 1 << 8, /* by fork: what never struck is the parent's to count */
	SLOT_MADE = 1 << 9,      /* the kernel has said that the attempt succeeded, to us */
	SLOT_SHUT = 1 << 10      /* the program has shut its receiving side */
};

/* What becomes of a datagram. */
enum fate_kind {
	FATE_OPEN, /* nobody has looked at it */
	FATE_PASSES,
	FATE_LOST,
	FATE_TWICE,
	FATE_FAILS,
	FATE_BUSY /* somebody is looking at it, or taking it */
};

#define FATE_BITS 3

/* Decided when it is looked at first, and kept until it is taken. One thread at a time does either:
 * the others come after, or would go by what was decided of another datagram. */
struct fate_kept {
	_Atomic uint32_t state; /* enum fate_kind; above, how often it changed */
	_Atomic int error;      /* of FATE_FAILS */
	_Atomic uint64_t due_ns;
	_Atomic uint64_t busy_until_ns; /* whoever is at it longer has left it (longjmp) */
};

/* Of a datagram socket: which strikes are about the peer that it is connected to, by index. */
#define PEER_KNOWN (1u << 31)
#define PEER_NONE  (1u << 30)
#define PEER_STRIKES (PEER_NONE - 1)

struct slot {
	_Atomic uint32_t generation; /* the connection's + 1; 0: never used */
	_Atomic uint32_t flags;      /* enum slot_flag */
	_Atomic uint32_t kinds;      /* bit = enum fault_kind: armed or on */
	_Atomic uint32_t count;      /* strikes in use */
	_Atomic uint32_t call;       /* number of the unit, from 1 */
	_Atomic int attempt_error, error;
	_Atomic uint64_t rules; /* fault_rules.generation that it was matched with */
	/* The exchange's began_ns, of the attempt and of the unit. */
	_Atomic uint64_t attempt_ns, call_ns;
	_Atomic uint64_t attempt_due_ns, answer_due_ns, end_due_ns;
	_Atomic uint64_t in_until_ns, out_until_ns;
	struct fate_kept next; /* of a datagram socket: of the one that it will receive next */
	_Atomic uint64_t unstamped_ns; /* when it had the first that the kernel had not stamped */
	_Atomic int unsent;    /* of one that sendmmsg() did not come to: what it fails with */
	_Atomic uint32_t peer; /* of a datagram socket; 0: not asked yet, PEER_NONE: it has none */
	struct strike strikes[FAULT_TOGETHER_MAX];
};

/* Where a fault looks at a connection: in a call on it, or where it is waited for. */
struct sight {
	struct connection *connection;
	struct slot *slot;
	uint64_t now_ns;
	int fd;
	bool is_blocking; /* the call waits by itself: nothing needs to be held */
};

/* May such a rule hold readiness back? */
bool slot_kind_holds(enum fault_kind kind);

/* Memory for as many slots as fd_table has connections. False without it. */
bool slots_start(void);

/* The slot of a connection, whether it is valid or not; NULL before start. */
struct slot *slot_of(const struct connection *connection);

/* Is it this connection's, as it is now? */
bool slot_is_valid(const struct slot *slot, const struct connection *connection);

/* Empties it for a new attempt of the connection (call 1), or for one that was there before any
 * rule was (call 0: its next one is the first that is looked at). */
void slot_begin(struct slot *slot, const struct connection *connection, uint32_t call);

/* Room for one more rule, not yet in use; NULL where there is none. slot_add() puts it to use, with
 * its rule. */
struct strike *slot_room(struct slot *slot);
void slot_add(struct slot *slot, const struct strike *strike);

/* The connection under that rule, or NULL. */
struct strike *slot_find(struct slot *slot, uint32_t rule);

/* After a change of a strike's state: sets slot->kinds. */
void slot_count_kinds(struct slot *slot);

static inline uint32_t slot_count(const struct slot *slot)
{
	uint32_t count = atomic_load_explicit(&slot->count, memory_order_acquire);

	return count < FAULT_TOGETHER_MAX ? count : FAULT_TOGETHER_MAX;
}

static inline bool slot_has(const struct slot *slot, uint32_t flags)
{
	return atomic_load_explicit(&slot->flags, memory_order_acquire) & flags;
}

static inline void slot_set(struct slot *slot, uint32_t flags)
{
	atomic_fetch_or_explicit(&slot->flags, flags, memory_order_acq_rel);
}

static inline void slot_clear(struct slot *slot, uint32_t flags)
{
	atomic_fetch_and_explicit(&slot->flags, ~flags, memory_order_acq_rel);
}

static inline uint32_t slot_kinds(const struct slot *slot)
{
	return atomic_load_explicit(&slot->kinds, memory_order_relaxed);
}

static inline bool slot_has_kind(const struct slot *slot, enum fault_kind kind)
{
	return slot_kinds(slot) >> kind & 1;
}

static inline struct fault_rule *strike_rule(const struct strike *strike)
{
	return fault_rule_at(atomic_load_explicit(&strike->rule, memory_order_relaxed));
}

static inline const struct fault *strike_fault(const struct strike *strike)
{
	return &strike_rule(strike)->fault;
}

static inline bool strike_is(const struct strike *strike, enum strike_state state)
{
	return atomic_load_explicit(&strike->state, memory_order_relaxed) == (uint32_t)state;
}

static inline uint32_t strike_number(const struct strike *strike)
{
	return atomic_load_explicit(&strike->connection, memory_order_relaxed);
}

static inline uint64_t strike_value(const struct strike *strike)
{
	return atomic_load_explicit(&strike->value, memory_order_relaxed);
}

/* Before the program's shutdown(): who sleeps there wakes. */
void slot_shut(const struct connection *connection, int how);

/* Connections in use that have a number of the rule below this one. */
uint32_t slots_of_rule(uint32_t rule, uint32_t number);

/* Calls `each` for the slot of every connection that has one. */
void slots_each(void (*each)(struct slot *slot));

#endif
