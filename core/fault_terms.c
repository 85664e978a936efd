/* SPDX-License-Identifier: MIT */
#include "core/fault_terms.h"

#include <assert.h>
#include <string.h>

#include "core/fault_reader.h"
#include "core/fault_writer.h"

#define DAY_NS 86400000000000ull
#define COUNT_MAX 1000000000u
#define BYTES_MAX (1ull << 40)

#define CONNECT POSSIBLE_CONNECT
#define DATA (POSSIBLE_SEND | POSSIBLE_RECV)

static const char *const direction_words[] = { "in", "out", "both", NULL };
static const char *const per_words[] = { "conn", "call", NULL };
static const char *const protocol_words[] = { "tcp", "udp", NULL };

static const char until_a_day[] = "a duration from 1ns to 24h";
static const char sizes[] = "a size from 0B to 1024GiB";
static const char counts[] = "a whole number from 1 to 1000000000";

static const struct fault_term table[] = {
#define READ(reader) .read = fault_reader_##reader, .write = fault_writer_##reader
#define FIELD(reader, name) READ(reader), .offset = offsetof(struct fault, name)
#define RANGE(from, to, text) .low = (from), .high = (to), .limits = (text)
#define TCP .is_for_tcp = true
#define UDP .is_for_udp = true
#define PER_CONNECTION .per = FAULT_PER_CONNECTION
#define ONLY_PER_CONNECTION PER_CONNECTION, .is_connection_only = true
#define PER_CALL .per = FAULT_PER_CALL
#define LOOKUP(fault) .group = FAULT_TERM_LOOKUP, .kind = (fault), ONLY_PER_CONNECTION
	{ "refuse", "refuse", "connects fail with ECONNREFUSED",
		.kind = FAULT_REFUSE, .where = CONNECT, ONLY_PER_CONNECTION, TCP },
	{ "unreachable", "unreachable", "connects fail with EHOSTUNREACH",
		.kind = FAULT_UNREACHABLE, .where = CONNECT, ONLY_PER_CONNECTION, TCP },
	{ "timeout", "timeout[=DUR]", "connects fail with ETIMEDOUT, at once or after DUR",
		.kind = FAULT_TIMEOUT, .where = CONNECT, ONLY_PER_CONNECTION, TCP,
		FIELD(duration, delay_ns), RANGE(0, DAY_NS, "a duration from 0s to 24h"),
		.is_optional = true },
	{ "hang", "hang", "connects get no answer; with per=call, requests get none",
		.kind = FAULT_HANG, .where = CONNECT | DATA, PER_CONNECTION, TCP },
	{ "reset", "reset[=BYTES]", "the connection is reset, at once or after BYTES",
		.kind = FAULT_RESET, .where = DATA, .direction = FAULT_IN, PER_CONNECTION, TCP,
		FIELD(size, bytes), RANGE(0, BYTES_MAX, sizes), .is_optional = true },
	{ "close", "close[=BYTES]", "the peer closes the connection, at once or after BYTES",
		.kind = FAULT_CLOSE, .where = DATA, .direction = FAULT_IN, PER_CONNECTION, TCP,
		FIELD(size, bytes), RANGE(0, BYTES_MAX, sizes), .is_optional = true },
	{ "latency", "latency=DUR[~JITTER][/normal|/uniform]",
		"connections, answers or lookups come later by DUR, give or take JITTER",
		.kind = FAULT_LATENCY, .where = CONNECT | POSSIBLE_RECV, PER_CALL, TCP, UDP,
		FIELD(latency, delay_ns), RANGE(1, DAY_NS, until_a_day) },
	{ "rate", "rate=SIZE/s", "no more bytes a second, in each direction",
		.kind = FAULT_RATE, .where = DATA, .direction = FAULT_BOTH, ONLY_PER_CONNECTION,
		TCP, FIELD(rate, bytes), RANGE(1, BYTES_MAX, "a rate from 1B/s to 1024GiB/s") },
	{ "short", "short[=N[..M]]", "reads and writes move at most 1 byte, N, or N to M",
		.kind = FAULT_SHORT, .where = DATA, .direction = FAULT_BOTH, PER_CALL, TCP,
		READ(range), RANGE(1, COUNT_MAX, "numbers of bytes from 1, such as 10 or 1..16"),
		.is_optional = true },
	{ "eintr", "eintr", "a send or recv that may block is interrupted by EINTR, once",
		.kind = FAULT_EINTR, .where = DATA, .direction = FAULT_BOTH, PER_CALL, TCP },
	{ "eagain", "eagain", "a call that may not block fails with EAGAIN, once",
		.kind = FAULT_EAGAIN, .where = DATA, .direction = FAULT_BOTH, PER_CALL, TCP },
	{ "errno", "errno=NAME",
		"connect fails with this error; with dir or per=call, send or recv",
		.kind = FAULT_ERRNO, .where = CONNECT | DATA, .direction = FAULT_BOTH,
		PER_CONNECTION, TCP, UDP, READ(error),
		.limits = "an error of connect, send or recv such as ECONNREFUSED" },
	{ "slowclose", "slowclose=DUR", "the end of the stream comes later by DUR",
		.kind = FAULT_SLOWCLOSE, .where = POSSIBLE_RECV, ONLY_PER_CONNECTION, TCP,
		FIELD(duration, delay_ns), RANGE(1, DAY_NS, until_a_day) },
	{ "corrupt", "corrupt[=N]", "one byte, or N, of what is sent or received is changed",
		.kind = FAULT_CORRUPT, .where = DATA, .direction = FAULT_BOTH, PER_CALL, TCP,
		FIELD(count, low), RANGE(1, COUNT_MAX, counts), .is_optional = true },
	{ "drop", "drop", "a datagram is lost",
		.kind = FAULT_DROP, .where = DATA, .direction = FAULT_BOTH, PER_CALL, UDP },
	{ "dup", "dup", "a datagram comes twice",
		.kind = FAULT_DUP, .where = DATA, .direction = FAULT_BOTH, PER_CALL, UDP },
	{ "maxconn", "maxconn=N", "connects beyond N open connections fail with ECONNREFUSED",
		.kind = FAULT_MAXCONN, .where = CONNECT, ONLY_PER_CONNECTION, TCP,
		FIELD(count, low), RANGE(0, COUNT_MAX, "a whole number from 0 to 1000000000") },
	{ "nxdomain", "nxdomain", "there is no such name: EAI_NONAME", LOOKUP(FAULT_NXDOMAIN) },
	{ "servfail", "servfail", "the resolver fails: EAI_FAIL", LOOKUP(FAULT_SERVFAIL) },
	{ "again", "again", "the resolver fails for now: EAI_AGAIN", LOOKUP(FAULT_AGAIN) },
	{ "nodata", "nodata", "the name has no address: EAI_NODATA", LOOKUP(FAULT_NODATA) },
	{ "addr", "addr=IP", "the name has this address", LOOKUP(FAULT_ADDR),
		READ(address), .limits = "an address such as 192.0.2.1 or 2001:db8::1" },
#define WHEN .group = FAULT_TERM_WHEN
	{ "P%", "P% | 1/N", "strikes at random, this share of the time", WHEN,
		FIELD(ratio, ratio) },
	{ "calls", "calls=FIRST[..LAST][+[STEP]]",
		"strikes connections, or with per=call calls, of these numbers", WHEN,
		READ(calls), RANGE(1, UINT32_MAX - 1, "numbers such as 3, 1..2, 3+ or 3..9+2") },
	{ "times", "times=N", "strikes so often, then no more", WHEN,
		FIELD(count, times), RANGE(1, COUNT_MAX, counts) },
	{ "after", "after=DUR", "strikes no earlier", WHEN,
		FIELD(duration, after_ns), RANGE(1, DAY_NS, until_a_day) },
	{ "for", "for=DUR", "strikes so long, then no more", WHEN,
		FIELD(duration, for_ns), RANGE(1, DAY_NS, until_a_day) },
	{ "every", "every=DUR", "strikes once at most in so long", WHEN,
		FIELD(duration, every_ns), RANGE(1, DAY_NS, until_a_day) },
	{ "flap", "flap=DOWN/UP", "strikes for DOWN, then not for UP, and so on", WHEN,
		READ(flap), RANGE(1, DAY_NS, "two durations such as 2s/8s") },
#define SCOPE .group = FAULT_TERM_SCOPE
	{ "dir", "dir=in|out|both", "what is received, sent, or both", SCOPE,
		FIELD(word, direction), RANGE(FAULT_IN, 0, "in, out or both"),
		.words = direction_words },
	{ "per", "per=conn|call", "chosen anew for each connection, or for each call on it", SCOPE,
		FIELD(word, per), RANGE(0, 0, "conn or call"), .words = per_words },
	{ "proto", "proto=tcp|udp", "of stream sockets (the default) or of datagrams", SCOPE,
		FIELD(word, protocol), RANGE(0, 0, "tcp or udp"), .words = protocol_words },
	{ "proc", "proc=GLOB[|GLOB]", "in programs of these names alone", SCOPE,
		READ(proc), .limits = "globs of program names with | between them, at most 127 "
			"characters" },
	{ "uid", "uid=N", "in processes of this user alone", SCOPE,
		READ(uid), RANGE(0, UINT32_MAX - 1, "the number of a user") },
#undef READ
#undef FIELD
#undef RANGE
#undef TCP
#undef UDP
#undef PER_CONNECTION
#undef ONLY_PER_CONNECTION
#undef PER_CALL
#undef LOOKUP
#undef WHEN
#undef SCOPE
};

#define ROW_COUNT (sizeof(table) / sizeof(table[0]))

static_assert(ROW_COUNT <= FAULT_TERMS_MAX, "struct fault has a bit for each row");

const struct fault_term *fault_term_at(size_t index)
{
	return index < ROW_COUNT ? &table[index] : NULL;
}

const struct fault_term *fault_term_find(const char *name)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}

bool fault_term_is_given(const struct fault *fault, const struct fault_term *term)
{
	return fault->given >> (term - table) & 1;
}

void fault_term_give(struct fault *fault, const struct fault_term *term)
{
	fault->given |= 1ull << (term - table);
}
