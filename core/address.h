/* SPDX-License-Identifier: MIT */
/* IP addresses: read, write, compare. Pure, async-signal-safe. */
#ifndef SHUNT_CORE_ADDRESS_H
#define SHUNT_CORE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/* Reads a numeric address (also "[v6]"); false and *ret untouched if it is none. No zone
 * (fe80::1%eth0), no short IPv4 (127.1): an address has one spelling per family. */
bool address_parse(const char *text, struct address *ret);

/* From network-order bytes. address_read_v4() writes in place and in whole words: to load what was
 * stored in pieces took half as long as all that a connect() under no rule costs. */
void address_read_v4(const void *four_bytes, struct address *ret);
struct address address_from_v4(const void *four_bytes);
struct address address_from_v6(const void *sixteen_bytes);

/* As address_parse(), but 0.0.0.0 and :: stay what they are, for prefixes. *ret_is_mapped: written
 * as
 * ::ffff:a.b.c.d, so that prefix lengths count from 96. */
bool address_parse_prefix(const char *text, struct address *ret, bool *ret_is_mapped);

/* 0.0.0.0 and :: become loopback, the rest is itself. */
struct address address_loopback(struct address address);

/* Clears every bit behind the first `bits`. */
void address_clear_host_bits(struct address *address, unsigned int bits);

/* Do the families and the first `bits` bits agree? */
bool address_shares_prefix(const struct address *a, const struct address *b, unsigned int bits);

static inline bool address_equals(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
