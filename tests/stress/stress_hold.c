/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for the same connections, each registered in its own way, level- and edge-
 * triggered, oneshot and exclusive, while their readiness is held again and again for a moment and
 * let go. Each byte is sent when the one before was read: none is lost, or the connection stands
 * still, and none comes twice.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/fd_table.h"
#include "shim/hold.h"
#include "shim/runtime.h"

#define WAITERS		2
#define SETS		2
#define CONNECTIONS	12
#define ROUNDS		300 /* of each connection */
#define SECONDS_AT_MOST 240
#define FDS		256

static struct {
	int ends[2];
	uint32_t events;
	int set;
	pthread_mutex_t lock;
	_Atomic uint32_t heard;
} connections[CONNECTIONS];

static int sets[SETS];
static _Atomic uint64_t until[FDS];
static _Atomic uint32_t wrong, done, held, early;
static _Atomic uint64_t progress;

static struct hold_times ask(int fd, uint32_t events, uint64_t now_ns)
{
	struct hold_times times = { until[fd], 0 };

	held += events & EPOLLIN && times.in_ns > now_ns;
	return times;
}

/* Some at once, some after up to two milliseconds. */
static void say(int i)
{
	uint32_t round = connections[i].heard;
	uint64_t delay_ns = (uint64_t)(round * 7 + (uint32_t)i) % 5 * 500000;
	uint8_t byte = (uint8_t)round;

	until[connections[i].ends[0]] = delay_ns ? clock_now_ns() + delay_ns : 0;
	if (write(connections[i].ends[1], &byte, 1) != 1)
		wrong++;
}

static int control(int i, int operation)
{
	struct epoll_event event = { .events = connections[i].events, .data.u32 = (uint32_t)i };

	return real()->epoll_ctl(connections[i].set, operation, connections[i].ends[0], &event);
}

/* As a faulty call does: what is not due yet is not there. */
static bool is_heard(int i)
{
	int fd = connections[i].ends[0];
	uint8_t byte;

	if (clock_now_ns() < until[fd]) {
		early++;
		hold_again(fd);
		return false;
	}
	if (read(fd, &byte, 1) != 1) {
		wrong += errno != EAGAIN;
		return false;
	}
	wrong += byte != (uint8_t)connections[i].heard;
	return true;
}

/* Another waiter may have read it: of one that is level-triggered or exclusive both are told. */
static void hear(int i)
{
	pthread_mutex_lock(&connections[i].lock);
	if (is_heard(i)) {
		progress++;
		if (++connections[i].heard == ROUNDS)
			done++;
		else
			say(i);
	}
	if (connections[i].events & EPOLLONESHOT && control(i, EPOLL_CTL_MOD))
		wrong++;
	pthread_mutex_unlock(&connections[i].lock);
}

static void *waits(void *argument)
{
	int set = *(int *)argument;
	struct epoll_event events[3];

	while (done < CONNECTIONS) {
		int count = real()->epoll_wait(set, events, 3, 100);

		for (int i = 0; i < count; i++)
			hear((int)events[i].data.u32);
	}
	return NULL;
}

/* Meanwhile registrations come and go, whole sets are given back, and edges are asked for again. */
static void *disturbs(void *unused)
{
	uint32_t turn = 0;

	(void)unused;
	while (done < CONNECTIONS) {
		int i = (int)(turn++ % CONNECTIONS);

		if (turn % 3 == 0)
			hold_again(connections[i].ends[0]);
		else if (turn % 64 == 1)
			holds_release();
		else if (!(connections[i].events & (EPOLLONESHOT | EPOLLEXCLUSIVE)) &&
				control(i, turn % 2 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD) &&
				errno != EEXIST)
			wrong++;
		usleep(300);
	}
	return NULL;
}

static bool start(void)
{
	static const uint32_t kinds[] = { EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT,
		EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, EPOLLIN | EPOLLET | EPOLLONESHOT,
		EPOLLIN | EPOLLEXCLUSIVE };
	struct connection *stale;

	real_resolve();
	below_start();
	if (!fd_table_start() || !hold_start(ask))
		return false;
	holds_expect();
	for (int i = 0; i < SETS; i++)
		sets[i] = epoll_create1(0);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, connections[i].ends) ||
				connections[i].ends[1] >= FDS)
			return false;
		pthread_mutex_init(&connections[i].lock, NULL);
		connections[i].events = kinds[i % 6];
		connections[i].set = sets[i / 6 % SETS];
		if (!fd_table_connect(connections[i].ends[0], &stale) || control(i, EPOLL_CTL_ADD))
			return false;
	}
	return true;
}

/* Bounded in time only where nothing moves any more. */
static void watch(void)
{
	uint64_t seen = 0, since_ns = clock_now_ns();

	while (done < CONNECTIONS) {
		usleep(10000);
		if (progress != seen)
			since_ns = clock_now_ns();
		seen = progress;
		if (clock_now_ns() - since_ns < SECONDS_AT_MOST * 1000000000ull)
			continue;
		for (int i = 0; i < CONNECTIONS; i++)
			printf("connection %d (%x): %u of %u\n", i, connections[i].events,
					connections[i].heard, ROUNDS);
		_exit(1);
	}
}

int main(void)
{
	pthread_t threads[SETS * WAITERS], disturber;

	if (!start())
		return 1;
	for (int i = 0; i < SETS * WAITERS; i++)
		pthread_create(&threads[i], NULL, waits, &sets[i % SETS]);
	pthread_create(&disturber, NULL, disturbs, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		say(i);
	watch();
	for (int i = 0; i < SETS * WAITERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(disturber, NULL);
	printf("%u reports held, %u told early, %u wrong\n", held, early, wrong);
	return wrong || !held;
}
