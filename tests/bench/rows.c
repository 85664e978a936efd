/* SPDX-License-Identifier: MIT */
/*
 * rows ROW: the cost of one path in nanoseconds an operation, on one line. Run bare (the stub alone
 * preloaded) and with the library before the stub; scripts/bench subtracts.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/control.h"
#include "core/clock.h"
#include "core/segment.h"

/* Short enough to fit between two turns of the scheduler on a busy machine. */
#define BATCHES 301

static char buffer[64] = "GET / HTTP/1.1\r\n";
static struct sockaddr_in peer;

static int fresh_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int connected_socket(void)
{
	int fd = fresh_socket();

	connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	return fd;
}

static int answered_socket(void)
{
	int fd = connected_socket();

	send(fd, buffer, 16, 0);
	recv(fd, buffer, 16, 0);
	return fd;
}

static void foreign_send(long count)
{
	while (count--)
		send(7, buffer, 16, 0);
}

static void foreign_recv(long count)
{
	while (count--)
		recv(7, buffer, 16, 0);
}

static void inside_recv(long count)
{
	int fd = answered_socket();

	while (count--)
		recv(fd, buffer, 16, 0);
	close(fd);
}

static void inside_send(long count)
{
	int fd = connected_socket();

	send(fd, buffer, 16, 0);
	while (count--)
		send(fd, buffer, 16, 0);
	close(fd);
}

static void exchange(long count)
{
	int fd = answered_socket();

	while (count--) {
		send(fd, buffer, 16, 0);
		recv(fd, buffer, 16, 0);
	}
	close(fd);
}

static void only_connect(long count)
{
	int fd = fresh_socket();

	while (count--)
		connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	close(fd);
}

/* Admitted: a connection made, known to be established, and forgotten. */
static void connect_and_close(long count)
{
	while (count--)
		close(connected_socket());
}

static struct segment *segment;
static struct breaker breaker;

static void core_start(void)
{
	static struct settings settings;
	struct cell_key key;

	if (segment)
		return;
	settings = settings_default;
	segment = segment_open_private();
	if (!segment)
		exit(1);
	cell_key_make(&key, CELL_CONNECTION, "BENCH", "bench", NULL, 1, &settings.window);
	breaker = (struct breaker){
		.cell = segment_cell(segment, &key, cell_key_hash(&key), 1),
		.settings = &settings,
	};
}

static void core_pair(long count)
{
	struct permit permit;
	uint64_t now_ns = clock_now_ns();

	core_start();
	while (count--) {
		now_ns += 100;
		breaker_acquire(&breaker, now_ns, 0, &permit, &(place_t){ 0 });
		breaker_report(&breaker, permit, OUTCOME_SUCCESS, 1000, now_ns);
	}
}

static void core_refused(long count)
{
	struct permit permit;
	uint64_t now_ns = clock_now_ns();

	core_start();
	control_trip(&breaker, now_ns);
	while (count--)
		breaker_acquire(&breaker, now_ns, 0, &permit, &(place_t){ 0 });
	control_reset(&breaker, now_ns);
}

struct row {
	const char *name;
	void (*run)(long count);
	long count;
	int processes;
};

static const struct row rows[] = {
	{ "foreign-send", foreign_send, 40000, 1 },
	{ "foreign-recv", foreign_recv, 40000, 1 },
	{ "inside-recv", inside_recv, 40000, 1 },
	{ "inside-send", inside_send, 20000, 1 },
	{ "exchange", exchange, 5000, 1 },
	{ "connect-refused", only_connect, 10000, 1 },
	{ "connect-admitted", connect_and_close, 2000, 1 },
	{ "core-pair", core_pair, 10000, 1 },
	{ "core-refused", core_refused, 40000, 1 },
	{ "core-two", core_pair, 10000, 2 },
};

static double batch_ns(const struct row *row)
{
	uint64_t began = clock_now_ns();

	row->run(row->count);
	return (double)(clock_now_ns() - began) / (double)row->count;
}

/* The minimum of many short batches: what the path costs when nothing else runs. */
static double row_ns(const struct row *row)
{
	double best = batch_ns(row);

	for (int batch = 1; batch < BATCHES; batch++) {
		double now = batch_ns(row);

		if (now < best)
			best = now;
	}
	return best;
}

/* Both at once on one circuit; the median batch of the parent, since a minimum would catch the
 * moments in which the other is not running. */
static double two_ns(const struct row *row)
{
	double all[BATCHES];
	pid_t child;

	core_start();
	child = fork();
	if (child == 0)
		for (;;)
			row->run(row->count);
	batch_ns(row);
	for (int batch = 0; batch < BATCHES; batch++) {
		double now = batch_ns(row);
		int at = batch;

		for (; at > 0 && all[at - 1] > now; at--)
			all[at] = all[at - 1];
		all[at] = now;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return all[BATCHES / 2];
}

int main(int count, char **arguments)
{
	peer = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(9) };
	inet_pton(AF_INET, "127.0.0.1", &peer.sin_addr);
	for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
		if (count == 2 && !strcmp(arguments[1], rows[index].name)) {
			printf("%.2f\n", rows[index].processes == 2 ? two_ns(&rows[index])
					: row_ns(&rows[index]));
			return 0;
		}
	fprintf(stderr, "rows: expected the name of a row\n");
	return 2;
}
