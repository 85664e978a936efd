/* SPDX-License-Identifier: MIT */
/* Events in any order, sensible or not, on one exchange: a call ends once, and only an open one;
 * what the fast questions call irrelevant is. An event is four bytes. */
#include <errno.h>
#include <string.h>

#include "shim/exchange.h"
#include "tests/fuzz/fuzz.h"

#define EVENT_SIZE 4
#define LENGTH(array) (sizeof(array) / sizeof(array[0]))

static struct exchange exchange;
static struct settings settings;
static bool is_open;
static uint64_t now_ns;

static const int errors[] = {0, EAGAIN, EINTR, EINPROGRESS, EALREADY, EISCONN, ECONNREFUSED,
		ECONNRESET, EPIPE, ETIMEDOUT, ENETUNREACH, ENOTCONN, EHOSTUNREACH, EBADF, 4095,
		ECONNABORTED};

static const char *const texts[] = { "", "\x16\x03\x01\x00\x02zz", "SSH-2.0-x", "@RSYNCD: 31",
	"PRI * HTTP/2.0\r\n\r\n", "GET /", "\x17\x03\x03\x00\x03zzz", "\x17\x03\x03\x00\x13",
	"\x15\x03\x03\x00\x02zz", "x", "\x17\x03\x03\x0f\xff", "HTTP/1.1 200 OK\r\n\r\n" };

static struct bytes chosen_bytes(uint8_t choice)
{
	static struct iovec vector;
	const char *text = texts[choice % LENGTH(texts)];
	/* Some records have a zero byte in their header. */
	size_t size = choice % LENGTH(texts) == 0 ? 0 : strlen(text);

	if ((uint8_t)text[0] >= 0x15 && (uint8_t)text[0] <= 0x17)
		size = 5u + strlen(text + 5);
	vector = (struct iovec){ (void *)text, size };
	if (choice >= 240)
		return (struct bytes){ 0 };
	return (struct bytes){ &vector, 1 };
}

static ssize_t moved(struct bytes bytes, uint8_t choice)
{
	if (choice & 0x80)
		return -1;
	if (!bytes.vectors)
		return choice;
	size_t all = bytes.vectors->iov_len;

	return choice & 0x40 ? 0 : (ssize_t)(all - all * (choice & 1) / 2);
}

static void check_step(struct exchange_step step)
{
	FUZZ_EXPECT(step.ended < OUTCOME_COUNT && step.ended != OUTCOME_REJECTED &&
			step.ended != OUTCOME_SHORT_CIRCUITED);
	if (step.ended != OUTCOME_NONE) {
		FUZZ_EXPECT(is_open);
		is_open = false;
	}
	if (step.starts_call)
		FUZZ_EXPECT(!is_open && !exchange_has(&exchange,
				EXCHANGE_UNMETERED | EXCHANGE_CUT));
}

static void check_flags(void)
{
	uint32_t flags = exchange_flags(&exchange);

	FUZZ_EXPECT(is_open == !!(flags & EXCHANGE_OPEN));
	FUZZ_EXPECT(is_open || !(flags & (EXCHANGE_PENDING | EXCHANGE_SENT)));
	FUZZ_EXPECT(!(flags & EXCHANGE_REUSED) || !(flags & EXCHANGE_SENT));
	FUZZ_EXPECT(!(flags & EXCHANGE_PENDING) || !(flags & EXCHANGE_ESTABLISHED));
}

static void check_unchanged(const struct exchange *before)
{
	FUZZ_EXPECT(exchange_flags(before) == exchange_flags(&exchange));
	FUZZ_EXPECT(memcmp(&before->tls, &exchange.tls, sizeof(before->tls)) == 0);
}

static void send_event(const uint8_t *event)
{
	struct bytes bytes = chosen_bytes(event[2]);
	bool is_sending = exchange_is_sending(&exchange);
	struct exchange before = exchange;
	struct exchange_step step = exchange_will_send(&exchange, &settings, bytes, now_ns);

	check_step(step);
	if (is_sending) {
		FUZZ_EXPECT(!step.starts_call && step.ended == OUTCOME_NONE);
		check_unchanged(&before);
	}
	if (step.starts_call && event[3] % 8 == 0) {
		exchange_cut(&exchange);
		return;
	}
	if (step.starts_call) {
		FUZZ_EXPECT(exchange_call(&exchange, now_ns));
		is_open = true;
	}
	before = exchange;
	is_sending = exchange_minds_sent(&exchange);
	check_step(exchange_sent(&exchange, &settings, bytes, moved(bytes, event[3]),
			errors[event[3] % LENGTH(errors)], now_ns));
	if (!is_sending)
		check_unchanged(&before);
}

static void receive_event(const uint8_t *event)
{
	struct bytes bytes = chosen_bytes(event[2]);
	struct exchange before = exchange;
	bool minds = exchange_minds_receive(&exchange);
	uint64_t began_ns = exchange_times_receive(&exchange) ? now_ns - event[3] * 10000000ull : 0;

	check_step(exchange_received(&exchange, &settings, bytes, moved(bytes, event[3]),
			errors[event[3] % LENGTH(errors)], event[1] & 1, began_ns, now_ns));
	if (!minds)
		check_unchanged(&before);
}

static void other_event(const uint8_t *event)
{
	int error = errors[event[2] % LENGTH(errors)];

	switch (event[0] % 12) {
	case 0:
		if (is_open)
			break;
		exchange_begin(&exchange, now_ns);
		is_open = true;
		break;
	case 1:
		check_step(exchange_connected(&exchange, &settings, error, now_ns));
		break;
	case 2:
		check_step(exchange_so_error(&exchange, &settings, error, now_ns));
		break;
	case 3:
		check_step(exchange_waited(&exchange, now_ns - event[2] * 10000000ull,
				now_ns));
		break;
	case 4:
		exchange_wait_begins(&exchange, now_ns);
		break;
	case 5:
		check_step(exchange_shutdown(&exchange, &settings, event[2] % 4, now_ns));
		break;
	case 6:
		check_step(exchange_closed(&exchange, &settings, now_ns));
		FUZZ_EXPECT(!is_open);
		break;
	case 7:
		if (event[2] % 4 == 0)
			check_step(exchange_cancelled(&exchange));
		break;
	case 8:
		if (event[2] % 4 == 0)
			check_step(exchange_left_to_stdio(&exchange));
		break;
	case 9:
		exchange_wait_begins(&exchange, now_ns);
		break;
	case 10:
		exchange_set_receive_timeout(&exchange, event[2] * 10000000ull);
		break;
	default:
		settings.guard = event[2] % 16 ? GUARD_EXCHANGE : GUARD_CONNECT;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	exchange = (struct exchange){ 0 };
	settings = settings_default;
	is_open = false;
	now_ns = 1000000000000ull;
	for (size_t at = 0; at + EVENT_SIZE <= size; at += EVENT_SIZE) {
		const uint8_t *event = data + at;

		/* The coarse clock may step back a little. */
		now_ns += event[1] * 10000000ull;
		now_ns -= event[1] % 5 * 1000000ull;
		if (event[0] < 80)
			send_event(event);
		else if (event[0] < 160)
			receive_event(event);
		else
			other_event(event);
		check_flags();
	}
	return 0;
}
