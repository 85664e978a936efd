/* SPDX-License-Identifier: MIT */
/*
 * A preload that is at work before main() and after it: its constructor and its destructor have
 * threads that connect to 127.0.0.1, port EARLY_PORT, and say how many were refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 16

static struct sockaddr_in target;
static _Atomic int refused;

static void *be_refused(void *nothing)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&target, sizeof(target)) == -1 && errno == ECONNREFUSED)
		atomic_fetch_add(&refused, 1);
	close(fd);
	return nothing;
}

static void work(const char *when)
{
	const char *port = getenv("EARLY_PORT");
	pthread_t threads[THREADS];

	if (!port)
		return;
	target = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((in_port_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	refused = 0;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, be_refused, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	dprintf(STDERR_FILENO, "%s: %d refused\n", when, refused);
}

__attribute__((constructor)) static void before(void)
{
	work("before");
}

__attribute__((destructor)) static void after(void)
{
	work("after");
}
