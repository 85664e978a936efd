/* SPDX-License-Identifier: MIT */
/*
 * Threads that connect in the same moment, under a rule that lets so many connections be open at
 * once: so many get through each time, never more and never fewer, and the others are refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/fd_table.h"
#include "shim/inject.h"
#include "shim/real.h"
#include "shim/runtime.h"

#define THREADS		4
#define ROUNDS		5000
#define SECONDS_AT_MOST 60 /* no round begins after that */

__typeof__(socket) hook_socket;
__typeof__(connect) hook_connect;
__typeof__(close) hook_close;

/* A rule, and the server that it is about. */
static struct scene {
	unsigned int limit;
	struct sockaddr_in peer;
	int listener;
} scenes[] = { { .limit = 1 }, { .limit = 3 } };

#define SCENES (sizeof(scenes) / sizeof(scenes[0]))

static pthread_barrier_t barrier;
static _Atomic unsigned int ready, made, refused;
static _Atomic bool is_over;
static unsigned long wrong;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static void listen_at(struct scene *scene)
{
	struct sockaddr *peer = (struct sockaddr *)&scene->peer;
	socklen_t size = sizeof(scene->peer);

	scene->peer.sin_family = AF_INET;
	scene->peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	scene->listener = real()->socket(AF_INET, SOCK_STREAM, 0);
	if (scene->listener < 0 || bind(scene->listener, peer, size) ||
			real()->listen(scene->listener, 64) ||
			getsockname(scene->listener, peer, &size))
		fail("listen");
}

static void start(void)
{
	char text[256];
	size_t length = 0;

	for (size_t i = 0; i < SCENES; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
				"fault M%zu = 127.0.0.1:%u maxconn=%u\n", i,
				ntohs(scenes[i].peer.sin_port), scenes[i].limit);
	config_load_text(&runtime.config, "stress", text, length);
	runtime.segment = segment_open_private();
	if (runtime.config.problem_count || !runtime.segment || !fd_table_start())
		fail("start");
	runtime.pid = (uint32_t)getpid();
	inject_start("stress");
	atomic_store(&runtime.is_active, true);
}

/* Closer together than a barrier lets them go. */
static void start_together(void)
{
	ready++;
	while (ready < THREADS)
		sched_yield();
}

static void *connect_together(void *argument)
{
	const struct scene *scene = argument;

	while (pthread_barrier_wait(&barrier), !is_over) {
		int fd = hook_socket(AF_INET, SOCK_STREAM, 0);

		start_together();
		if (hook_connect(fd, (const struct sockaddr *)&scene->peer,
				sizeof(scene->peer)) == 0)
			made++;
		else if (errno == ECONNREFUSED)
			refused++;
		else
			fail("connect");
		pthread_barrier_wait(&barrier);
		hook_close(fd);
	}
	return NULL;
}

/* Nothing piles up where they are accepted. */
static void take_connections(int listener, unsigned int count)
{
	while (count-- > 0) {
		int fd = real()->accept(listener, NULL, NULL);

		if (fd < 0)
			fail("accept");
		real()->close(fd);
	}
}

static void look(const struct scene *scene)
{
	if (made != scene->limit || refused != THREADS - scene->limit) {
		fprintf(stderr, "maxconn=%u: %u made, %u refused\n", scene->limit, made, refused);
		wrong++;
	}
	take_connections(scene->listener, made);
	made = refused = 0;
}

static unsigned long run(struct scene *scene)
{
	uint64_t last_ns = clock_now_ns() + SECONDS_AT_MOST * 1000000000ull;
	pthread_t threads[THREADS];
	unsigned long rounds = 0;

	is_over = false;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, connect_together, scene);
	for (; rounds < ROUNDS && clock_now_ns() < last_ns; rounds++) {
		ready = 0;
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		look(scene);
	}
	is_over = true;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return rounds;
}

int main(void)
{
	real_resolve();
	for (size_t i = 0; i < SCENES; i++)
		listen_at(&scenes[i]);
	start();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (size_t i = 0; i < SCENES; i++)
		printf("maxconn=%u: %lu rounds\n", scenes[i].limit, run(&scenes[i]));
	printf("%lu wrong\n", wrong);
	return wrong > 0;
}
