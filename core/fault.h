/* SPDX-License-Identifier: MIT */
/*
 * One fault rule, read from one string, and whether it strikes a call. Pure: told the time and the
 * numbers, so that the same seed chooses the same, whatever the threads do.
 *
 *	redis:6379 latency=300ms~50ms 20% calls=3+2 for=2m per=call
 *
 * Space and comma both separate. A rule has one kind of fault, a condition for when, and a scope.
 * All rules that match an endpoint apply, unless a fault rule ^target keeps it out of all of them.
 */
#ifndef SHUNT_CORE_FAULT_H
#define SHUNT_CORE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/possible.h"
#include "core/rule.h"
#include "core/target.h"

/* In the order of the table that everything else reads. */
enum fault_kind {
	FAULT_REFUSE,      /* connect: ECONNREFUSED */
	FAULT_UNREACHABLE, /* connect: EHOSTUNREACH */
	FAULT_TIMEOUT,     /* connect: ETIMEDOUT, after `delay` */
	FAULT_HANG,        /* no answer to connects, or requests: all from the peer is dropped */
	FAULT_RESET,       /* ECONNRESET after `bytes` */
	FAULT_CLOSE,       /* end of stream after `bytes` */
	FAULT_LATENCY,     /* the connection, or the answer, comes `delay` later */
	FAULT_RATE,        /* no more than `bytes` a second */
	FAULT_SHORT,       /* reads and writes of `low` to `high` bytes at most */
	FAULT_EINTR,       /* a call that may block is interrupted, once */
	FAULT_EAGAIN,      /* a call that must not block has nothing yet, once */
	FAULT_ERRNO,       /* connect, send or recv fails with `error` */
	FAULT_SLOWCLOSE,   /* the peer's end of stream comes `delay` later */
	FAULT_CORRUPT,     /* `low` bytes are changed */
	FAULT_DROP,        /* a datagram is lost */
	FAULT_DUP,         /* a datagram comes twice */
	FAULT_MAXCONN,     /* connections beyond `low` open ones are refused */
	FAULT_NXDOMAIN,    /* lookups, from here on: EAI_NONAME */
	FAULT_SERVFAIL,    /* EAI_FAIL */
	FAULT_AGAIN,       /* EAI_AGAIN */
	FAULT_NODATA,      /* EAI_NODATA */
	FAULT_ADDR,        /* another address */
	FAULT_KIND_COUNT   /* also: none, of a ^target */
};

enum fault_spread { FAULT_UNIFORM, FAULT_NORMAL };
enum fault_direction { FAULT_IN = 1, FAULT_OUT = 2, FAULT_BOTH = 3 };
enum fault_per { FAULT_PER_CONNECTION, FAULT_PER_CALL };
enum fault_protocol { FAULT_TCP, FAULT_UDP };

#define FAULT_PROC_SIZE 128
#define FAULT_TOGETHER_MAX 8 /* rules on one connection or lookup; more that match do nothing */

/* What of the rule is given a number, from 1: lookups count as connections of one call. */
struct fault_unit {
	uint32_t connection; /* of the rule, over all processes */
	uint32_t call;       /* of the connection; 1: the attempt and its first answer */
};

struct fault {
	char name[RULE_NAME_SIZE]; /* REDIS of SHUNT_FAULT_REDIS; "default" of SHUNT_FAULT */
	struct target target;      /* of a dns: target the name */
	bool is_lookup;            /* dns:NAME */
	bool is_from_file;
	bool has_uid;
	uint32_t uid;
	char proc[FAULT_PROC_SIZE]; /* globs with | between them; "": every program */
	uint64_t given;            /* bit = row of fault_term_at() */
	enum fault_kind kind;
	enum fault_per per;
	enum fault_direction direction;
	enum fault_protocol protocol;
	unsigned int where;        /* enum possible_call, or 0 of lookups: what it strikes */
	/* What the kind takes; 0 where it was not given. */
	uint64_t delay_ns, jitter_ns;
	enum fault_spread spread;
	uint64_t bytes; /* of reset, close: after so many; of rate: a second */
	uint32_t unit;  /* in which the rule says them, to say them so again; 0: of itself */
	uint32_t low, high;
	int error;
	struct address address;
	/* When. */
	uint32_t ratio;              /* parts per million; RATIO_ONE where none was given */
	uint32_t first, last, step;  /* of `calls`; first 0: not given; last UINT32_MAX: no end */
	uint32_t times;              /* 0: no end */
	uint64_t after_ns, for_ns;   /* for_ns 0: no end */
	uint64_t every_ns;           /* at most one injection in each such stretch of time */
	uint64_t down_ns, up_ns;     /* flap: strikes for `down`, then not for `up`, and so on */
	uint64_t expire_ns;          /* SHUNT_EXPIRE; 0: no end. Set by who has the configuration */
	uint64_t hash;               /* of name and text: the same rule in another process */
};

/* Why a rule that matched did not strike. */
enum fault_reason {
	FAULT_STRIKES,
	FAULT_BY_CHANCE,  /* P% */
	FAULT_BY_NUMBER,  /* calls= */
	FAULT_BY_TIMES,	  /* times=, every= */
	FAULT_BY_TIME,	  /* after=, for=, flap=, SHUNT_EXPIRE */
	FAULT_IMPOSSIBLE, /* this socket or call cannot come to it, or another fault came first */
	FAULT_UNREACHED,  /* reset, close, slowclose: the connection ended before */
	FAULT_BY_MODE,	  /* observe, a seccomp filter, no timer thread */
	FAULT_REASON_COUNT
};

/* "chance", "number", ... as status and reports name it. Static. */
const char *fault_reason_name(enum fault_reason reason);

/* "refuse", "latency", ... Static. */
const char *fault_kind_name(enum fault_kind kind);

/* The kind of that name, or FAULT_KIND_COUNT. */
enum fault_kind fault_kind_of(const char *name);

/* < 0 if `a` is to be asked first: exclusions, then target_compare(), then the names. */
int fault_compare(const struct fault *a, const struct fault *b);

/* The rule of that name, or NULL. */
const struct fault *fault_find(const struct fault faults[], size_t count, const char *name);

/* Moves faults[last] to where it belongs among those before it, which are in order. */
void fault_place(struct fault faults[], size_t last);

/* proc= and uid=: is it about this process? `program`: its base name; NULL: not asked. */
bool fault_is_for(const struct fault *fault, const char *program, uint32_t euid);

/* Is it about this endpoint: target, lookup or not, protocol? A ^target is about both protocols,
 * and about lookups of its names; one of dns:NAME about those alone. What is excluded is the
 * caller's to leave out. */
bool fault_matches(const struct fault *fault, const struct endpoint *endpoint,
		enum fault_protocol protocol);

/* The outcome of the draw for a unit. */
struct fault_choice {
	enum fault_reason reason; /* FAULT_STRIKES, or why not */
	uint64_t value;           /* drawn: the delay in ns, the bytes of a short call; else what
				   * the rule says (bytes, delay, error number) */
};

/*
 * Does the rule strike this unit? `elapsed_ns`: since the rule began; `for` and `flap` count from
 * `after`. Of a rule that is `per` connection the call's number does not matter. `times` and
 * `every` are the caller's to count. Pure: the same arguments, the same answer.
 */
struct fault_choice fault_choose(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint64_t elapsed_ns);

/* The `index`th further number of a unit: where to corrupt, for instance. */
uint64_t fault_number(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint32_t index);

#endif
