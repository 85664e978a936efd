/* SPDX-License-Identifier: MIT */
/*
 * Reads TLS record headers out of a byte stream, in pieces of any size; decides nothing. One of
 * these for each direction of a connection. Hostile input cannot make it read outside the buffers
 * it is given.
 */
#ifndef SHUNT_SHIM_TLS_H
#define SHUNT_SHIM_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_ALERT 21
#define TLS_HANDSHAKE 22
#define TLS_APPLICATION 23

struct tls_reader {
	uint16_t body_left;   /* bytes of the current record still to come */
	uint8_t header[4];    /* of a header that was cut in two: what came so far, less the last byte */
	uint8_t header_size;  /* 0..4 */
};

struct tls_record {
	uint8_t type;
	uint16_t length;
};

/*
 * Moves over *bytes up to and including the next record header, or to the end. True and *ret filled
 * where a header was completed; then call again for the next. *bytes and *size are advanced.
 */
bool tls_next(struct tls_reader *reader, const uint8_t **bytes, size_t *size,
		struct tls_record *ret);

#endif
