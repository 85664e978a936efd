/* SPDX-License-Identifier: MIT */
/*
 * What the record headers of a TLS connection tell about requests and answers (docs/BEHAVIOUR.md
 * section 2, rule 10). Follows both directions in pieces of any size and looks at nothing but
 * headers. Knows no time but what it is told, allocates nothing, is async-signal-safe; hostile
 * input can't make it read outside the buffers it is given, two threads in one direction can't
 * either.
 */
#ifndef SHUNT_SHIM_TLS_H
#define SHUNT_SHIM_TLS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define TLS_CHANGE_CIPHER 20
#define TLS_ALERT 21
#define TLS_HANDSHAKE 22
#define TLS_APPLICATION 23

#define TLS_TICKETS 4                 /* so many records at most are taken for tickets */
#define TLS_TICKET_SIZE 2048          /* and only shorter ones */
#define TLS_TICKET_NS 60000000ull     /* and only this soon after what the client sent last */

/* What a call moves or will move. */
struct bytes {
	const struct iovec *vectors; /* NULL where the data is out of sight (sendfile, splice) */
	size_t count;
};

/* Zero: at the beginning of a record. */
struct tls_reader {
	uint32_t word;
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

/* Can this be the header of a record at all? */
bool tls_record_is_plausible(struct tls_record record);

/* A connection whose first bytes sent were 16 03. Zeroed memory is one on which nothing was sent.
 */
struct tls {
	_Atomic uint64_t sent_ns; /* last application data sent; until then the first byte */
	_Atomic uint32_t sent, received; /* a struct tls_reader each */
	_Atomic uint16_t ticket_length;
	_Atomic uint16_t round_trip_ms; /* of the handshake, rounded up; 0: not known yet */
	_Atomic uint8_t ticket_count;
	_Atomic uint8_t ticket_count_before; /* of the last application data sent */
	_Atomic uint8_t state;
};

static_assert(sizeof(struct tls) == 24, "15 bytes and a time in every connection");

enum tls_sight {
	TLS_NOTHING,
	TLS_REQUEST, /* application data of the client begins in it */
	TLS_ANSWER,  /* application data of the server that answers a request begins in it */
	TLS_FAREWELL, /* the client's last word in it is an alert: it ends the connection */
	TLS_BROKEN   /* no TLS, or not any more (the kernel does it): follow it no longer */
};

void tls_begin(struct tls *tls);

/* Would sending these bytes begin application data? Changes nothing. */
enum tls_sight tls_will_send(const struct tls *tls, struct bytes bytes);

/* These bytes are about to be sent: their answer may be read, by another thread, before tls_sent()
 * or tls_sent_nothing() tells how many of them were. */
void tls_foresee(struct tls *tls, struct bytes bytes, uint64_t now_ns);
void tls_sent_nothing(struct tls *tls);

/* The first `size` of these bytes were sent. */
enum tls_sight tls_sent(struct tls *tls, struct bytes bytes, size_t size, uint64_t now_ns);

/* The first `size` of these bytes were received. `may_be_tickets` until the connection has had an
 * answer. Of a peek nothing is remembered. */
enum tls_sight tls_received(struct tls *tls, struct bytes bytes, size_t size, bool may_be_tickets,
		bool is_peek, uint64_t now_ns);

enum tls_turn { TLS_TURN_OF_CLIENT, TLS_TURN_OF_SERVER, TLS_TURN_UNKNOWN };

/* Who has to say something, until the connection has had an answer: the server until the handshake
 * is over, and after a request. Where one record that may be a ticket came after that, it is not
 * known. */
enum tls_turn tls_turn(const struct tls *tls);

/* Was exactly one record taken for a ticket since the request? It may have been a short answer. */
bool tls_has_one_ticket(const struct tls *tls);

#endif
