/* SPDX-License-Identifier: MIT */
/* Host globs, ranges and ports; does this endpoint match. Pure, async-signal-safe. */
#ifndef SHUNT_CORE_TARGET_H
#define SHUNT_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"

#define HOST_SIZE 256 /* a DNS name, lower case, without the trailing dot, terminated */

/* Lower case, without a trailing dot, into a buffer of HOST_SIZE. False if it does not fit. */
bool host_normalize(const char *host, char *ret);

/*
 * What users write, all without case and without a trailing dot:
 *
 *	pay.internal          that name
 *	.example.com          every name below it: a.example.com, not example.com itself
 *	web-?.example.*       a glob over names; never over addresses
 *	10.1.2.3  2001:db8::1 that address, under whatever name it was asked for
 *	10.0.0.0/8            every address of the prefix
 *	any                   everything, lookups too
 *
 * with an optional :PORT or :FIRST-LAST (an IPv6 address then stands in brackets), and ^ in front.
 * Names are letters, digits, - and _; international ones are written in punycode.
 */
enum target_kind { TARGET_EXACT, TARGET_SUFFIX, TARGET_GLOB, TARGET_RANGE, TARGET_ANY };

struct target {
	enum target_kind kind;
	bool is_excluded;     /* written ^target: keeps its endpoints out of every other rule */
	bool is_address;      /* EXACT or RANGE over addresses, not names */
	uint8_t prefix_bits;  /* RANGE: 0..32 or 0..128 */
	struct address address;
	uint16_t port_low, port_high; /* 0..65535 when no port was given */
	uint16_t host_length;
	char host[HOST_SIZE]; /* normalised text; suffix with its leading dot */
	char text[HOST_SIZE]; /* as the user wrote it, shortened if need be */
};

/* NULL and *ret filled; or what was expected ("a host, .suffix, ..."), *ret untouched. Static. */
const char *target_parse(const char *text, struct target *ret);

/* The same on less of a stack: where something else was expected, *ret is undefined. */
const char *target_read(const char *text, struct target *ret);

/* Something to be matched. `host` is the normalised name the address was learned from, or NULL.
 * `address` NULL or family 0 for a lookup; then the port is ignored. */
struct endpoint {
	const char *host;
	const struct address *address;
	uint16_t port;
	bool is_lookup;
};

/* The spelling that was probably meant by a text that target_parse() refused
 * (10.1.2.3/8: 10.0.0.0/8), at least 64 bytes. False where none is known. */
bool target_suggest(const char *text, char *ret, size_t size);

/* A rule by name needs the name, a rule by address needs the address; `any` needs neither. The port
 * counts only where there is an address. */
bool target_matches(const struct target *target, const struct endpoint *endpoint);

/* Is it decided by names only, so that names must be learned for it? */
bool target_wants_names(const struct target *target);

/* Order of rules: < 0 if `a` is more specific. Exact, suffix, glob, range, any; then the longer (an
 * exact name before an exact address), then the narrower port range. 0 where they are equal in
 * rank. */
int target_compare(const struct target *a, const struct target *b);

#endif
