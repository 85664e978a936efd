/* SPDX-License-Identifier: MIT */
/* Host globs, ranges and ports; does this endpoint match. Pure, async-signal-safe. */
#ifndef SHUNT_CORE_TARGET_H
#define SHUNT_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_SIZE 256 /* a DNS name, lower case, without the trailing dot, terminated */

/* An IP address: IPv4 and v4-mapped IPv6 are both family 4 with the address in the first four bytes
 * and the rest zero, so that two spellings of one address compare equal by memcmp. 0.0.0.0 and ::
 * are normalised to 127.0.0.1 and ::1: the kernel connects to those. */
struct address {
	uint8_t bytes[16];
	uint8_t family; /* 4, 6, or 0: none */
	uint8_t reserved[3];
};

/* "10.1.2.3", "2001:db8::1" into `text`; at least 46 bytes. Returns text. Own formatter: safe in a
 * hook. */
char *address_format(const struct address *address, char *text);

/* Reads a numeric address (also "[v6]"); false and *ret untouched if it is none. */
bool address_parse(const char *text, struct address *ret);

/* From network-order bytes. */
struct address address_from_v4(const void *four_bytes);
struct address address_from_v6(const void *sixteen_bytes);

/* Lower case, without a trailing dot, into a buffer of HOST_SIZE. False if it does not fit. */
bool host_normalize(const char *host, char *ret);

enum target_kind { TARGET_EXACT, TARGET_SUFFIX, TARGET_GLOB, TARGET_RANGE, TARGET_ANY };

struct target {
	enum target_kind kind;
	bool is_excluded;     /* written ^target: keeps its endpoints out of every other rule */
	bool is_address;      /* EXACT or RANGE over addresses, not names */
	uint8_t prefix_bits;  /* RANGE: 0..32 or 0..128 */
	struct address address;
	uint16_t port_low, port_high; /* 0..65535 when no port was given */
	char host[HOST_SIZE]; /* normalised text; suffix with its leading dot */
	char text[HOST_SIZE]; /* as the user wrote it, shortened if need be */
};

/* NULL and *ret filled; or what was expected ("a host, .suffix, ..."), *ret untouched. Static. */
const char *target_parse(const char *text, struct target *ret);

/* Something to be matched. `host` is the normalised name the address was learned from, or NULL.
 * `address` NULL or family 0 for a lookup; then the port is ignored. */
struct endpoint {
	const char *host;
	const struct address *address;
	uint16_t port;
	bool is_lookup;
};

bool target_matches(const struct target *target, const struct endpoint *endpoint);

/* Is it decided by names only, so that names must be learned for it? */
bool target_wants_names(const struct target *target);

/* Order of rules: < 0 if `a` is more specific. Exact, suffix, glob, range, any; then the longer, then
 * the narrower port range. */
int target_compare(const struct target *a, const struct target *b);

#endif
