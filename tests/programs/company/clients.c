/* SPDX-License-Identifier: MIT */
/*
 *	clients PORT THREADS ROUNDS
 *
 * Threads that look 127.0.0.1 up, connect, ask over HTTP, read and close; every second one keeps
 * its connection. Prints how many answers there were and how many refusals.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static const char *port;
static int rounds;
static _Atomic int answers, refusals, others, next_number;

static int connected(void)
{
	struct addrinfo wanted = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	int fd = -1;

	if (getaddrinfo("127.0.0.1", port, &wanted, &found))
		return -1;
	fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (connect(fd, found->ai_addr, found->ai_addrlen)) {
		atomic_fetch_add(errno == ECONNREFUSED ? &refusals : &others, 1);
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* The server's answer is small: it comes in one piece. */
static void ask(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char answer[4096];

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request) &&
			poll(&wait, 1, -1) == 1 && recv(fd, answer, sizeof(answer), 0) > 0)
		atomic_fetch_add(&answers, 1);
	else
		atomic_fetch_add(&others, 1);
}

static void *be_client(void *nothing)
{
	int number = atomic_fetch_add(&next_number, 1), fd = -1;

	for (int i = 0; i < rounds; i++) {
		if (fd < 0)
			fd = connected();
		if (fd < 0)
			continue;
		ask(fd);
		if (number % 2)
			continue;
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		close(fd);
	return nothing;
}

int main(int argc, char *argv[])
{
	pthread_t threads[64];
	int count;

	if (argc < 4)
		return 2;
	alarm(120);
	port = argv[1];
	count = atoi(argv[2]) < 64 ? atoi(argv[2]) : 64;
	rounds = atoi(argv[3]);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, be_client, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("answers %d refusals %d others %d\n", answers, refusals, others);
	return 0;
}
