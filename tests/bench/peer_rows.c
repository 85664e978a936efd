/* SPDX-License-Identifier: MIT */
/*
 * peer_rows ROW SOCKETS ADDRESS [check]: what one call costs through whatever is preloaded before
 * the stub, in nanoseconds: the minimum and the median of many short batches, and how many proxies
 * the stub played, on one line.
 *
 * SOCKETS: `made` by socket(), or `foreign`, numbers that nobody saw being made. `check` runs few
 * batches between marks (getppid) that scripts/bench looks for in a trace: between them no system
 * call may be made. A call that does not succeed ends it all: a refusal is fast.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

#define BATCHES 301
#define BATCHES_CHECKED 3
/* As many connections at once as a busy client's pool has. */
#define SOCKETS 64
#define FOREIGN_FD 1900
#define SIZE 16

/* The stub's. */
__attribute__((weak)) int bench_stub_handshakes(void);

static char buffer[64] = "GET / HTTP/1.1\r\n";
static struct sockaddr_in peer;
static int sockets[SOCKETS];
static bool is_foreign;
static bool is_checked;

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "peer_rows: expected %s to succeed\n", what);
	exit(1);
}

static void sockets_make(void)
{
	for (int index = 0; index < SOCKETS; index++) {
		sockets[index] = is_foreign ? FOREIGN_FD + index : socket(AF_INET, SOCK_STREAM, 0);
		expect(sockets[index] >= 0, "socket");
	}
}

/* What a peer would otherwise do at connect, with system calls: outside of what is measured. */
static void sockets_bind(void)
{
	struct sockaddr_in local = { .sin_family = AF_INET };

	local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int index = 0; index < SOCKETS && !is_foreign; index++)
		expect(!bind(sockets[index], (struct sockaddr *)&local, sizeof(local)), "bind");
}

static void sockets_connect(void)
{
	for (int index = 0; index < SOCKETS; index++)
		expect(!connect(sockets[index], (struct sockaddr *)&peer, sizeof(peer)), "connect");
}

static void sockets_close(void)
{
	for (int index = SOCKETS - 1; index >= 0; index--)
		close(sockets[index]);
}

static void send_one(int fd)
{
	expect(send(fd, buffer, SIZE, 0) == SIZE, "send");
}

static void recv_one(int fd)
{
	expect(recv(fd, buffer, SIZE, 0) == SIZE, "recv");
}

/* The rest of a request, and of an answer: the first of each is the row `exchange`. */
static void send_many(long count)
{
	while (count--)
		send_one(sockets[0]);
}

static void recv_many(long count)
{
	while (count--)
		recv_one(sockets[0]);
}

static void exchange_many(long count)
{
	while (count--) {
		send_one(sockets[0]);
		recv_one(sockets[0]);
	}
}

static void connect_many(long count)
{
	(void)count;
	sockets_connect();
}

/* With all that comes before and after. */
static void connection_many(long count)
{
	(void)count;
	sockets_make();
	sockets_connect();
	sockets_close();
}

struct row {
	const char *name;
	void (*run)(long count);
	long count;
	bool is_connected;
};

static const struct row rows[] = {
	{ "connect", connect_many, SOCKETS, false },
	{ "send", send_many, 500, true },
	{ "recv", recv_many, 500, true },
	{ "exchange", exchange_many, 300, true },
	{ "connection", connection_many, SOCKETS, false },
};

static void mark(void)
{
	if (is_checked)
		syscall(SYS_getppid);
}

static double batch_ns(const struct row *row)
{
	uint64_t began, ended;

	if (row->run != connection_many) {
		sockets_make();
		sockets_bind();
	}
	if (row->is_connected) {
		sockets_connect();
		send_one(sockets[0]);
		if (row->run == recv_many)
			recv_one(sockets[0]);
	}
	mark();
	began = clock_now_ns();
	row->run(row->count);
	ended = clock_now_ns();
	mark();
	if (row->run != connection_many)
		sockets_close();
	return (double)(ended - began) / (double)row->count;
}

static int compare(const void *left, const void *right)
{
	double difference = *(const double *)left - *(const double *)right;

	return (difference > 0) - (difference < 0);
}

static void row_print(const struct row *row)
{
	static double all[BATCHES];
	int count = is_checked ? BATCHES_CHECKED : BATCHES;

	/* Whatever is set up at a first call. */
	is_checked = false;
	batch_ns(row);
	is_checked = count == BATCHES_CHECKED;
	for (int batch = 0; batch < count; batch++)
		all[batch] = batch_ns(row);
	qsort(all, (size_t)count, sizeof(all[0]), compare);
	printf("%.2f %.2f %d\n", all[0], all[count / 2], bench_stub_handshakes());
}

int main(int count, char **arguments)
{
	peer = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(9) };
	if (!bench_stub_handshakes || count < 4 ||
			inet_pton(AF_INET, arguments[3], &peer.sin_addr) != 1) {
		fprintf(stderr, "usage: LD_PRELOAD=[...:]STUB "
				"peer_rows ROW made|foreign ADDRESS [check]\n");
		return 2;
	}
	is_foreign = !strcmp(arguments[2], "foreign");
	is_checked = count > 4;
	for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
		if (!strcmp(arguments[1], rows[index].name)) {
			row_print(&rows[index]);
			return 0;
		}
	fprintf(stderr, "peer_rows: expected the name of a row\n");
	return 2;
}
