/* SPDX-License-Identifier: MIT */
/* One row of the table of what a fault rule may say. */
#ifndef SHUNT_CORE_FAULT_TERM_H
#define SHUNT_CORE_FAULT_TERM_H

#include "core/fault.h"

enum fault_term_group {
	FAULT_TERM_KIND,   /* what happens; of any target but dns: ones, except latency */
	FAULT_TERM_LOOKUP, /* what happens, of dns: targets */
	FAULT_TERM_WHEN,
	FAULT_TERM_SCOPE
};

/* One row. */
struct fault_term {
	const char *name;    /* "latency"; "P%" of the bare ratio */
	const char *form;    /* "latency=DUR[~JITTER][/normal|/uniform]" */
	const char *meaning; /* one line */
	enum fault_term_group group;
	enum fault_kind kind; /* of the two groups of kinds */
	/* NULL and *fault changed, or what was expected. `value` NULL: a word without =. */
	const char *(*read)(const struct fault_term *term, struct fault *fault, const char *value);
	/* The value again, "" where there is none. NULL: it takes none. */
	void (*write)(const struct fault_term *term, const struct fault *fault, char *ret,
			size_t size);
	size_t offset;            /* of its field */
	uint64_t low, high;       /* in the unit of `read` */
	const char *limits;       /* what was expected, where it is out of them */
	const char *const *words; /* what it may be, up to NULL; or NULL */
	bool is_optional;         /* the value may be left out */
	/* Of kinds: */
	unsigned int where;             /* enum possible_call; `dir` chooses of SEND and RECV */
	enum fault_direction direction; /* by default; 0: `dir` says nothing to it */
	enum fault_per per;             /* by default */
	bool is_connection_only;        /* per=call is not possible */
	bool is_for_tcp, is_for_udp;
};

/* The row's field. */
void *fault_term_field(const struct fault_term *term, struct fault *fault);
const void *fault_term_value(const struct fault_term *term, const struct fault *fault);

bool fault_term_is_kind(const struct fault_term *term);

#endif
