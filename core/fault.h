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

#include "core/rule.h"
#include "core/target.h"

/* In the order of the table that everything else reads. */
enum fault_kind {
	FAULT_REFUSE,      /* connect: ECONNREFUSED */
	FAULT_UNREACHABLE, /* connect: EHOSTUNREACH */
	FAULT_TIMEOUT,     /* connect: ETIMEDOUT, after `delay` */
	FAULT_HANG,        /* the peer falls silent: whatever it sends is dropped by the kernel */
	FAULT_RESET,       /* ECONNRESET after `bytes` */
	FAULT_CLOSE,       /* end of stream after `bytes` */
	FAULT_LATENCY,     /* the connection, or the answer, comes `delay` later */
	FAULT_RATE,        /* no more than `bytes` a second */
	FAULT_SHORT,       /* reads and writes of `low` to `high` bytes at most */
	FAULT_EINTR,       /* a call that would block is interrupted, once */
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
	FAULT_KIND_COUNT
};

enum fault_spread { FAULT_UNIFORM, FAULT_NORMAL };
enum fault_direction { FAULT_IN = 1, FAULT_OUT = 2, FAULT_BOTH = 3 };
enum fault_per { FAULT_PER_CONNECTION, FAULT_PER_CALL };
enum fault_protocol { FAULT_TCP, FAULT_UDP };

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
	enum fault_kind kind;
	enum fault_per per;
	enum fault_direction direction;
	enum fault_protocol protocol;
	/* What the kind takes; 0 where it was not given. */
	uint64_t delay_ns, jitter_ns;
	enum fault_spread spread;
	uint64_t bytes; /* of reset, close: after so many; of rate: a second */
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
	uint64_t hash;               /* of name and text: the same rule in another process */
};

/* Why a rule that matched did not strike. */
enum fault_reason {
	FAULT_STRIKES,
	FAULT_BY_CHANCE,     /* P% */
	FAULT_BY_NUMBER,     /* calls= */
	FAULT_BY_TIMES,      /* times=, every= */
	FAULT_BY_TIME,       /* after=, for=, flap=, SHUNT_EXPIRE */
	FAULT_IMPOSSIBLE,    /* this socket or call cannot come to it, or another fault came first */
	FAULT_BY_MODE,       /* observe, a seccomp filter, no timer thread */
	FAULT_REASON_COUNT
};

/* "chance", "number", ... as status and reports name it. Static. */
const char *fault_reason_name(enum fault_reason reason);

/* "refuse", "latency", ... Static. */
const char *fault_kind_name(enum fault_kind kind);

/* The row of the table of kinds, when terms and scope terms at `index`, for --help, check and the
 * man page; false past the last. Static texts. */
struct fault_term {
	const char *name;    /* "latency" */
	const char *form;    /* "latency=DUR[~JITTER][/normal|/uniform]" */
	const char *meaning; /* one line */
};
bool fault_term_at(size_t index, struct fault_term *ret);

/* Fills *ret for a good name. False: *ret is undefined, and `error` (`size` bytes, always
 * terminated) says what is wrong: "rate: expected a rate such as 64KB/s, got '64'". Errors that the
 * call, socket and state cannot come to are refused here. */
bool fault_parse(const char *name, const char *text, size_t length, struct fault *ret, char *error,
		size_t size);

/* The rule as text again, without its name: settings in the order of the table. */
void fault_describe(const struct fault *fault, char *ret, size_t size);

/* Is it about this endpoint: target, lookup or not, protocol? Exclusions are the caller's. */
bool fault_matches(const struct fault *fault, const struct endpoint *endpoint,
		enum fault_protocol protocol);

/* The outcome of the draw for a unit. */
struct fault_choice {
	enum fault_reason reason; /* FAULT_STRIKES, or why not */
	uint64_t value;           /* drawn: the delay in ns, the bytes of a short call; else what
				   * the rule says (bytes, delay, error number) */
};

/*
 * Does the rule strike this unit? `elapsed_ns`: since the rule began. Of a rule that is `per`
 * connection the call's number does not matter. `times` and `every` are the caller's to count.
 * Pure: the same arguments, the same answer.
 */
struct fault_choice fault_choose(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint64_t elapsed_ns);

/* The `index`th further number of a unit: where to corrupt, for instance. */
uint64_t fault_number(const struct fault *fault, uint64_t seed, struct fault_unit unit,
		uint32_t index);

#endif
