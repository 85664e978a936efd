/* SPDX-License-Identifier: MIT */
#include "tests/programs/neighbour.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define THREADS 16
#define ROUNDS	100
#define SECONDS_AT_MOST 30

static struct pair early, late;
static struct sockaddr_in dead;
static pthread_t threads[THREADS];
static _Atomic int wrong;

static struct sockaddr_in bound_nowhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = stream_socket(SOCK_CLOEXEC);

	must(bind(fd, as_sockaddr(&address), length), "bind");
	must(getsockname(fd, as_sockaddr(&address), &length), "ask for a name");
	return address;
}

static void say_refused(const struct sockaddr_in *address)
{
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(address), sizeof(*address)));
	SAY(connect(fd, as_sockaddr(address), sizeof(*address)));
	close(fd);
}

static void talk(struct pair pair)
{
	char text[8];

	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
}

/* From the constructor on until main is well under way. */
static void *connects(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		wrong += connect(fd, as_sockaddr(&dead), sizeof(dead)) != -1 ||
				errno != ECONNREFUSED;
		wrong += close(fd) != 0;
	}
	return unused;
}

/* And after all destructors have run. */
static void *connects_for_ever(void *unused)
{
	for (;;)
		connects(unused);
	return unused;
}

__attribute__((constructor)) static void neighbour_start(void)
{
	struct sockaddr_in first = bound_nowhere();
	pthread_t endless;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(SECONDS_AT_MOST);
	fprintf(stderr, "before %d\n", ntohs(first.sin_port));
	say_refused(&first);
	early = pair_open();
	talk(early);
	dead = bound_nowhere();
	for (int i = 0; i < THREADS; i++)
		must(-pthread_create(&threads[i], NULL, connects, NULL), "start a thread");
	must(-pthread_create(&endless, NULL, connects_for_ever, NULL), "start a thread");
}

void neighbour_talks(void)
{
	talk(early);
	late = pair_open();
	talk(late);
}

__attribute__((destructor)) static void neighbour_stop(void)
{
	struct sockaddr_in last = bound_nowhere();

	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("wrong: %d\n", wrong);
	fprintf(stderr, "after %d\n", ntohs(last.sin_port));
	say_refused(&last);
	talk(early);
	if (late.client) {
		talk(late);
		pair_close(late);
	}
	pair_close(pair_answered());
	pair_close(early);
}
