/* SPDX-License-Identifier: MIT */
/*
 * A thread that pins connections, for shorter and for longer than who closes one spins, and threads
 * that close them and make the next ones of them: what is pinned is nobody else's, and whoever has
 * it next comes after all who had it pinned. The thread sanitizer sees that only where nothing else
 * orders the threads: here nothing does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/exchange_state.h"
#include "shim/fd_table.h"

#define CLOSERS		2
#define PINS		200000
#define SPINS		2048
/* Until there have been so many pins; fewer where threads wait for a processor. */
#define SECONDS_OF_PINS 40
#define SECONDS_AT_MOST 280

static uint64_t end_ns;
static _Atomic unsigned long pinned, wrong;

static bool is_over(void)
{
	return atomic_load_explicit(&pinned, memory_order_relaxed) >= PINS ||
	       clock_now_ns() > end_ns;
}

static void expect(bool is_so)
{
	if (!is_so)
		atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
}

static uint32_t generation_of(const struct connection *connection)
{
	return atomic_load_explicit(&connection->generation, memory_order_relaxed);
}

static void look(const struct connection *connection, unsigned int spins)
{
	uint32_t generation = generation_of(connection);

	for (unsigned int i = 0; i < spins; i++)
		expect(!exchange_has(&connection->exchange, EXCHANGE_OPEN));
	expect(generation_of(connection) == generation);
}

static void *pins(void *unused)
{
	struct connection *connection;
	unsigned int spins = 1;

	while (!is_over()) {
		for (uint32_t i = 0; (connection = fd_table_at(i)) != NULL; i++) {
			if (!fd_table_pin(connection))
				continue;
			look(connection, spins);
			fd_table_unpin(connection);
			atomic_fetch_add_explicit(&pinned, 1, memory_order_relaxed);
			spins = spins * 5 % SPINS + 1;
		}
	}
	return unused;
}

static void wait_until_pinned(const struct connection *connection)
{
	while (!atomic_load_explicit(&connection->pins, memory_order_relaxed) && !is_over())
		sched_yield();
}

static void *closes(void *argument)
{
	int fd = *(int *)argument;
	struct connection *connection, *stale;

	while (!is_over()) {
		connection = fd_table_connect(fd, &stale);
		expect(connection && !stale);
		wait_until_pinned(connection);
		fd_table_free(fd_table_set(fd, FD_OTHER));
	}
	return NULL;
}

int main(void)
{
	pthread_t pinner, closers[CLOSERS];
	int fds[CLOSERS];

	alarm(SECONDS_AT_MOST);
	end_ns = clock_now_ns() + SECONDS_OF_PINS * 1000000000ull;
	if (!fd_table_start())
		return 2;
	pthread_create(&pinner, NULL, pins, NULL);
	for (int i = 0; i < CLOSERS; i++) {
		fds[i] = i;
		pthread_create(&closers[i], NULL, closes, &fds[i]);
	}
	for (int i = 0; i < CLOSERS; i++)
		pthread_join(closers[i], NULL);
	pthread_join(pinner, NULL);
	printf("pinned %lu times, wrong %lu times\n", pinned, wrong);
	return wrong ? 1 : 0;
}
