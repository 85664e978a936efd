/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "core/fault_text.h"
#include "core/setting.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND 1000000000ull

static char error[256];
static struct fault fault;

static const struct fault *parsed(const char *text)
{
	cr_assert(fault_parse("REDIS", text, strlen(text), &fault, error, sizeof(error)), "%s: %s",
			text, error);
	return &fault;
}

Test(fault_text, is_a_target_a_fault_when_and_where)
{
	parsed("redis:6379 latency=300ms~50ms/normal 20% calls=3+2 for=2m after=1s times=7 "
	       "every=5s flap=2s/8s per=conn proc=curl|python* uid=33");
	cr_expect_str_eq(fault.name, "REDIS");
	cr_expect_str_eq(fault.target.host, "redis");
	cr_expect_eq(fault.kind, FAULT_LATENCY);
	cr_expect(fault.delay_ns == 300000000 && fault.jitter_ns == 50000000);
	cr_expect_eq(fault.spread, FAULT_NORMAL);
	cr_expect_eq(fault.ratio, 200000);
	cr_expect(fault.first == 3 && fault.last == UINT32_MAX && fault.step == 2);
	cr_expect(fault.for_ns == 120 * SECOND && fault.after_ns == SECOND);
	cr_expect(fault.times == 7 && fault.every_ns == 5 * SECOND);
	cr_expect(fault.down_ns == 2 * SECOND && fault.up_ns == 8 * SECOND);
	cr_expect_eq(fault.per, FAULT_PER_CONNECTION);
	cr_expect_str_eq(fault.proc, "curl|python*");
	cr_expect(fault.has_uid && fault.uid == 33);
}

Test(fault_text, space_and_comma_separate_and_order_is_free)
{
	static const char *const same[] = { "redis:6379,refuse,20%,for=2m",
		" redis:6379 for=2m , refuse 20% ,", "redis:6379\trefuse\n1/5 for=120s" };

	for (size_t i = 0; i < COUNT(same); i++) {
		parsed(same[i]);
		cr_expect_eq(fault.kind, FAULT_REFUSE);
		cr_expect_eq(fault.ratio, 200000);
		cr_expect_eq(fault.for_ns, 120 * SECOND);
	}
}

/* What follows where nothing was said. */
static const struct {
	const char *text;
	enum fault_kind kind;
	enum fault_per per;
	enum fault_direction direction;
	unsigned int where;
} defaults[] = {
#define CONNECT POSSIBLE_CONNECT
#define SEND POSSIBLE_SEND
#define RECV POSSIBLE_RECV
#define CONN FAULT_PER_CONNECTION
#define CALL FAULT_PER_CALL
	{ "a refuse", FAULT_REFUSE, CONN, 0, CONNECT },
	{ "a unreachable", FAULT_UNREACHABLE, CONN, 0, CONNECT },
	{ "a timeout", FAULT_TIMEOUT, CONN, 0, CONNECT },
	{ "a hang", FAULT_HANG, CONN, 0, CONNECT },
	{ "a hang per=call", FAULT_HANG, CALL, 0, SEND },
	{ "a reset", FAULT_RESET, CONN, FAULT_IN, RECV },
	{ "a close dir=out", FAULT_CLOSE, CONN, FAULT_OUT, SEND },
	{ "a latency=1s", FAULT_LATENCY, CALL, 0, CONNECT | RECV },
	{ "a rate=1KB/s", FAULT_RATE, CONN, FAULT_BOTH, SEND | RECV },
	{ "a short", FAULT_SHORT, CALL, FAULT_BOTH, SEND | RECV },
	{ "a short dir=in", FAULT_SHORT, CALL, FAULT_IN, RECV },
	{ "a eintr", FAULT_EINTR, CALL, FAULT_BOTH, SEND | RECV },
	{ "a eagain dir=both", FAULT_EAGAIN, CALL, FAULT_BOTH, SEND | RECV },
	{ "a slowclose=1s", FAULT_SLOWCLOSE, CONN, 0, RECV },
	{ "a corrupt per=conn", FAULT_CORRUPT, CONN, FAULT_BOTH, SEND | RECV },
	{ "a drop proto=udp", FAULT_DROP, CALL, FAULT_BOTH, SEND | RECV },
	{ "a dup proto=udp", FAULT_DUP, CALL, FAULT_BOTH, SEND | RECV },
	{ "a maxconn=3", FAULT_MAXCONN, CONN, 0, CONNECT },
	{ "a latency=1s proto=udp", FAULT_LATENCY, CALL, 0, CONNECT | RECV },
	{ "a errno=ETIMEDOUT", FAULT_ERRNO, CONN, FAULT_BOTH, CONNECT },
	{ "a errno=ECONNRESET per=call", FAULT_ERRNO, CALL, FAULT_BOTH, SEND | RECV },
	{ "a errno=EPIPE", FAULT_ERRNO, CALL, FAULT_BOTH, SEND },
	{ "a errno=EPIPE per=conn", FAULT_ERRNO, CONN, FAULT_BOTH, SEND },
	{ "a errno=ECONNRESET dir=in", FAULT_ERRNO, CALL, FAULT_IN, RECV },
	{ "a errno=ECONNREFUSED proto=udp", FAULT_ERRNO, CALL, FAULT_BOTH, SEND | RECV },
	{ "a errno=ENETUNREACH proto=udp", FAULT_ERRNO, CALL, FAULT_BOTH, SEND | RECV },
	{ "a errno=ENOBUFS proto=udp", FAULT_ERRNO, CALL, FAULT_BOTH, SEND },
	{ "dns:a nxdomain", FAULT_NXDOMAIN, CONN, 0, 0 },
	{ "dns:a latency=1s", FAULT_LATENCY, CONN, 0, 0 },
#undef CONNECT
#undef SEND
#undef RECV
#undef CONN
#undef CALL
};

Test(fault_text, what_was_not_said_follows_from_the_kind)
{
	for (size_t i = 0; i < COUNT(defaults); i++) {
		parsed(defaults[i].text);
		cr_expect_eq(fault.kind, defaults[i].kind, "%s", defaults[i].text);
		cr_expect_eq(fault.per, defaults[i].per, "%s", defaults[i].text);
		cr_expect_eq(fault.direction, defaults[i].direction, "%s", defaults[i].text);
		cr_expect_eq(fault.where, defaults[i].where, "%s: %u", defaults[i].text,
				fault.where);
		cr_expect_eq(fault.ratio, RATIO_ONE);
		cr_expect_eq(fault.first, 0);
	}
}

Test(fault_text, values_may_be_left_out)
{
	cr_expect_eq(parsed("a reset")->bytes, 0);
	cr_expect_eq(parsed("a timeout")->delay_ns, 0);
	cr_expect(parsed("a short")->low == 1 && fault.high == 1);
	cr_expect_eq(parsed("a corrupt")->low, 1);
	cr_expect_eq(parsed("a reset=64KiB")->bytes, 65536);
	cr_expect_eq(parsed("a timeout=3s")->delay_ns, 3 * SECOND);
	cr_expect(parsed("a short=2..8")->low == 2 && fault.high == 8);
}

Test(fault_text, lookups_have_their_own)
{
	cr_expect(parsed("dns:redis nodata")->is_lookup);
	cr_expect_str_eq(fault.target.host, "redis");
	cr_expect_str_eq(fault.target.text, "dns:redis");
	cr_expect(parsed("dns:any addr=::1")->is_lookup);
	cr_expect(fault.target.kind == TARGET_ANY && fault.address.family == 6);
	cr_expect(parsed("dns:.example.com servfail")->is_lookup);
	cr_expect_not(parsed("dns:53 drop proto=udp")->is_lookup, "a host may be called dns");
	cr_expect_str_eq(fault.target.host, "dns");
	cr_expect_eq(fault.target.port_low, 53);
}

Test(fault_text, an_exclusion_is_a_target_alone)
{
	cr_expect(parsed("^redis:6379")->target.is_excluded);
	cr_expect_eq(fault.kind, FAULT_KIND_COUNT);
	cr_expect_not(fault.is_lookup);
	cr_expect(parsed("^dns:redis")->target.is_excluded);
	cr_expect(fault.is_lookup);
	cr_expect_str_eq(fault.target.host, "redis");
	cr_expect_str_eq(fault.target.text, "^dns:redis");
}

static const char *const wrong[][2] = {
		{"", "expected a target such as redis:6379, got nothing"},
		{"redis", "expected a fault such as refuse or latency=300ms, got none"},
		{"dns:redis", "expected a fault such as nxdomain, servfail, again, nodata, addr=IP "
			      "or "
			      "latency=DUR, got none"},
		{"refuse", "expected the target first, such as redis:6379, got 'refuse'"},
		{"refuse redis:6379",
				"expected the target first, such as redis:6379, got 'refuse'"},
		{"nxdomain dns:redis",
				"expected the target first, such as redis:6379, got 'nxdomain'"},
		{"latency=1s", "expected the target first, such as redis:6379, got 'latency=1s'"},
		{"latency=1s redis",
				"expected the target first, such as redis:6379, got 'latency=1s'"},
		{"x=1s", "expected a target such as pay.internal:443 before the settings, got "
			 "'x=1s'"},
		{"redis 20%", "expected a fault such as refuse or latency=300ms, got none"},
		{"10.1.2.3/8 refuse", "expected a prefix without bits beyond its length, got "
				      "'10.1.2.3/8', did you mean 10.0.0.0/8?"},
		{"redis refus", "expected a fault, when or where, such as refuse, 20% or for=2m, "
				"got "
				"'refus', did you mean refuse?"},
		{"redis latncy=1s", "expected a fault, when or where, such as refuse, 20% or "
				    "for=2m, got "
				    "'latncy', did you mean latency?"},
		{"redis elephant", "expected a fault, when or where, such as refuse, 20% or "
				   "for=2m, got "
				   "'elephant'"},
		{"redis =5", "expected a fault, when or where, such as refuse, 20% or for=2m, got "
			     "''"},
		{"redis P%=20% refuse",
				"expected a fault, when or where, such as refuse, 20% or for=2m, "
				"got 'P%'"},
		{"redis refuse=1", "refuse: expected no value, got '1'"},
		{"redis refuse=", "refuse: expected no value, got ''"},
		{"redis refuse reset",
				"reset: expected one kind of fault, and refuse is there already; "
				"write a second rule"},
		{"redis refuse refuse", "refuse: expected it once, got 'refuse' as well"},
		{"redis refuse for=1m for=2m", "for: expected it once, got '2m' as well"},
		{"redis refuse 1% 2%", "expected one ratio, got '2%' as well"},
		{"redis refuse 20", "expected a ratio such as 50% or 1/20, got '20', did you mean "
				    "20%?"},
		{"redis refuse 120", "expected a ratio such as 50% or 1/20, got '120'"},
		{"redis refuse 120%", "expected 0%, or a ratio from 0.0001% to 100%, got '120%'"},
		{"redis refuse 0.5", "expected a ratio such as 50% or 1/20, got '0.5'"},
		{"redis refuse 1/1000000000",
				"expected 0%, or a ratio from 0.0001% to 100%, got '1/1000000000'"},
		{"redis latency", "latency: expected a duration such as 250ms, 5s or 1m, got "
				  "nothing"},
		{"redis latency=300",
				"latency: expected a duration such as 250ms, 5s or 1m, got '300', "
				"did you mean 300ms or 300s?"},
		{"redis latency=99999999h",
				"latency: expected a duration from 1ns to 24h, got '99999999h'"},
		{"redis latency=1s~99999999h", "latency: expected a duration from 1ns to 24h, got "
					       "'1s~99999999h'"},
		{"redis refuse for=99999999h",
				"for: expected a duration from 1ns to 24h, got '99999999h'"},
		{"redis reset=99999999999999999999MB",
				"reset: expected a size from 0B to 1024GiB, got "
				"'99999999999999999999MB'"},
		{"redis rate=99999999999999999999MB/s",
				"rate: expected a rate from 1B/s to 1024GiB/s, got "
				"'99999999999999999999MB/s'"},
		{"redis latency=0s", "latency: expected a duration from 1ns to 24h, got '0s'"},
		{"redis latency=1s~5", "latency: expected a duration such as 250ms, 5s or 1m, got "
				       "'1s~5'"},
		{"redis latency=1s/normal",
				"latency: expected ~JITTER/normal or ~JITTER/uniform, got "
				"'1s/normal'"},
		{"redis latency=1s~1s/norm",
				"latency: expected ~JITTER/normal or ~JITTER/uniform, got "
				"'1s~1s/norm'"},
		{"redis rate", "rate: expected a rate such as 64KB/s or 512kbit/s, got nothing"},
		{"redis rate=64",
				"rate: expected a rate such as 64KB/s or 512kbit/s, got '64', did "
				"you mean 64B/s or 64KB/s?"},
		{"redis rate=64KB",
				"rate: expected a rate such as 64KB/s or 512kbit/s, got '64KB'"},
		{"redis rate=0B/s", "rate: expected a rate from 1B/s to 1024GiB/s, got '0B/s'"},
		{"redis reset=64",
				"reset: expected a size such as 512B, 64KB or 1MiB, got '64', did "
				"you mean 64B or 64KB?"},
		{"redis close=", "close: expected a size such as 512B, 64KB or 1MiB, got ''"},
		{"redis short=0",
				"short: expected numbers of bytes from 1, such as 10 or 1..16, got "
				"'0'"},
		{"redis short=5..2", "short: expected the smaller number first, such as 1..16, got "
				     "'5..2'"},
		{"redis refuse calls=0",
				"calls: expected numbers such as 3, 1..2, 3+ or 3..9+2, got "
				"'0'"},
		{"redis refuse calls=5..2",
				"calls: expected the smaller number first, such as 1..2, got "
				"'5..2'"},
		{"redis refuse calls=1+0",
				"calls: expected numbers such as 3, 1..2, 3+ or 3..9+2, got "
				"'1+0'"},
		{"redis refuse times=0",
				"times: expected a whole number from 1 to 1000000000, got '0'"},
		{"redis refuse for=2",
				"for: expected a duration such as 250ms, 5s or 1m, got '2', did "
				"you mean 2ms or 2s?"},
		{"redis refuse flap=2s", "flap: expected two durations such as 2s/8s, got '2s'"},
		{"redis refuse flap=2s/0s",
				"flap: expected two durations from 1ns to 24h, such as 2s/8s, "
				"got '2s/0s'"},
		{"redis short dir=inn",
				"dir: expected in, out or both, got 'inn', did you mean in?"},
		{"redis refuse per=cal",
				"per: expected conn or call, got 'cal', did you mean call?"},
		{"redis refuse proto=sctp", "proto: expected tcp or udp, got 'sctp'"},
		{"redis refuse uid=root", "uid: expected the number of a user, got 'root'"},
		{"redis refuse proc=",
				"proc: expected globs of program names with | between them, at "
				"most 127 characters, got ''"},
		{"redis refuse dir=in", "dir: expected none with refuse, got 'dir=in'"},
		{"redis refuse per=call", "per: expected conn with refuse, got 'call'"},
		{"redis drop", "drop: expected proto=udp beside it, got none"},
		{"redis drop proto=tcp", "drop: expected proto=udp beside it, got 'proto=tcp'"},
		{"redis refuse proto=udp",
				"refuse: expected proto=tcp, got 'proto=udp', which takes "
				"latency, errno, drop and dup"},
		{"redis latency=1s proto=udp per=conn",
				"per: expected call with proto=udp, got 'conn'"},
		{"redis nxdomain", "nxdomain: expected a target such as dns:redis, got 'redis'"},
		{"dns:redis refuse",
				"refuse: expected a target without dns:, got 'dns:redis', which "
				"takes nxdomain, servfail, again, nodata, addr=IP or latency=DUR"},
		{"dns:redis again per=call",
				"per: expected a target without dns:, got 'dns:redis'"},
		{"dns:redis again proto=udp",
				"proto: expected a target without dns:, got 'dns:redis'"},
		{"dns:10.1.2.3 again", "expected a name, .suffix, glob or 'any' behind dns:, got "
				       "'dns:10.1.2.3'"},
		{"dns:redis:6379 again", "expected a name, .suffix, glob or 'any' behind dns:, got "
					 "'dns:redis:6379'"},
		{"dns:^redis", "expected a name, .suffix, glob or 'any' behind dns:, got "
			       "'dns:^redis'"},
		{"dns: again", "expected a name, .suffix, glob or 'any' behind dns:, got 'dns:'"},
		{"^dns:", "expected a name, .suffix, glob or 'any' behind dns:, got '^dns:'"},
		{"dns:redis addr=redis",
				"addr: expected an address such as 192.0.2.1 or 2001:db8::1, "
				"got 'redis'"},
		{"redis errno=ECONNREFUSE",
				"errno: expected an error of connect, send or recv such as "
				"ECONNREFUSED, got 'ECONNREFUSE', did you mean "
				"ECONNREFUSED?"},
		{"redis errno=EAI_AGAIN",
				"errno: expected an error of connect, send or recv such as "
				"ECONNREFUSED, got 'EAI_AGAIN'"},
		{"redis errno=EAGAIN",
				"errno: expected an error that ends a call (for EAGAIN there is "
				"the fault eagain), got 'EAGAIN'"},
		{"redis errno=EBADF",
				"errno: expected an error of connect, send or recv on a stream "
				"such as ECONNREFUSED, ECONNRESET or ETIMEDOUT, got 'EBADF'"},
		{"redis errno=EPIPE dir=in", "errno: expected an error of recv on a stream such as "
					     "ECONNREFUSED, ECONNRESET or ETIMEDOUT, got 'EPIPE'"},
		{"redis errno=ECONNRESET proto=udp",
				"errno: expected an error of send or recv "
				"on datagrams such as ECONNREFUSED, EHOSTUNREACH or "
				"ENETUNREACH, got 'ECONNRESET', did you mean "
				"ECONNREFUSED?"},
		{"^redis refuse", "expected nothing behind ^target, got 'refuse'"},
};

Test(fault_text, what_is_wrong_is_said)
{
	for (size_t i = 0; i < COUNT(wrong); i++) {
		cr_expect_not(fault_parse("REDIS", wrong[i][0], strlen(wrong[i][0]), &fault, error,
				sizeof(error)), "%s", wrong[i][0]);
		cr_expect_str_eq(error, wrong[i][1], "%s:\n%s\n%s", wrong[i][0], error,
				wrong[i][1]);
	}
}

Test(fault_text, a_message_keeps_to_its_buffer)
{
	char small[17];

	for (size_t i = 0; i < COUNT(wrong); i++) {
		small[16] = '#';
		fault_parse("REDIS", wrong[i][0], strlen(wrong[i][0]), &fault, small, 16);
		cr_expect_lt(strlen(small), 16);
		cr_expect_eq(small[16], '#');
	}
}

Test(fault_text, no_terminator_is_needed_and_none_is_allowed)
{
	cr_expect(fault_parse("X", "redis refuseXXX", 12, &fault, error, sizeof(error)));
	cr_expect_not(fault_parse("X", "redis\0refuse", 12, &fault, error, sizeof(error)));
	cr_expect_not(fault_parse("X", "redis ref\0use", 13, &fault, error, sizeof(error)));
}

Test(fault_text, the_hash_is_of_name_and_words)
{
	uint64_t hash = parsed("redis refuse 20%")->hash;

	cr_expect_eq(parsed("  redis,refuse,,20%")->hash, hash);
	cr_expect_neq(parsed("redis refuse 21%")->hash, hash);
	cr_expect_neq(parsed("redis refuse")->hash, hash);
	cr_assert(fault_parse("OTHER", "redis refuse 20%", 16, &fault, error, sizeof(error)));
	cr_expect_neq(fault.hash, hash);
}

static const char *const described[][2] = {
	{ "redis:6379,refuse", "redis:6379 refuse" },
	{ "redis 20% refuse", "redis refuse 20%" },
	{ "redis refuse 1/3", "redis refuse 1/3" },
	{ "redis refuse 0.05%", "redis refuse 0.05%" },
	{ "redis latency=0.3s~50000us/normal", "redis latency=300ms~50ms/normal" },
	{ "redis latency=90s~1ns/uniform", "redis latency=90s~1ns" },
	{ "redis latency=1.5h", "redis latency=90m" },
	{ "redis timeout", "redis timeout=0s" },
	{ "redis reset=64KiB", "redis reset=64KiB" },
	{ "redis reset", "redis reset=0B" },
	{ "redis rate=512kbit/s", "redis rate=512kbit/s" },
	{ "redis rate=640KB/s", "redis rate=640KB/s" },
	{ "redis rate=500KiB/s", "redis rate=500KiB/s" },
	{ "redis reset=1.5KB", "redis reset=1500B" },
	{ "redis close=2000KB", "redis close=2000KB" },
	{ "redis rate=3B/s dir=in", "redis rate=3B/s dir=in" },
	{ "redis short=1..16", "redis short=1..16" },
	{ "redis short", "redis short=1" },
	{ "redis corrupt", "redis corrupt=1" },
	{ "redis errno=EPIPE", "redis errno=EPIPE" },
	{ "redis refuse calls=3", "redis refuse calls=3" },
	{ "redis refuse calls=3+", "redis refuse calls=3+" },
	{ "redis refuse calls=3+1", "redis refuse calls=3+" },
	{ "redis refuse calls=3..9+2", "redis refuse calls=3..9+2" },
	{ "redis refuse calls=3+2", "redis refuse calls=3+2" },
	{ "redis flap=2s/8s hang uid=0 proc=a|b every=1m times=2",
		"redis hang times=2 every=1m flap=2s/8s proc=a|b uid=0" },
	{ "redis drop proto=udp dir=both per=call", "redis drop dir=both per=call proto=udp" },
	{ "dns:redis addr=::0:1 after=1s for=1s", "dns:redis addr=::1 after=1s for=1s" },
	{ "^dns:redis", "^dns:redis" },
	{ "^redis", "^redis" },
};

Test(fault_text, a_rule_is_described_as_it_may_be_written)
{
	char text[512], again[512];

	for (size_t i = 0; i < COUNT(described); i++) {
		fault_describe(parsed(described[i][0]), text, sizeof(text));
		cr_expect_str_eq(text, described[i][1]);
		fault_describe(parsed(text), again, sizeof(again));
		cr_expect_str_eq(again, text);
	}
}

Test(fault_text, a_description_keeps_to_its_buffer)
{
	char text[32];

	memset(text, '#', sizeof(text));
	fault_describe(parsed("redis:6379 latency=300ms~50ms/normal 20%"), text, 16);
	cr_expect_eq(strlen(text), 15);
	cr_expect_eq(text[16], '#');
}
