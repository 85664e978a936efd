/* SPDX-License-Identifier: MIT */
/* poll and select, with something to read, without, and with what cannot be. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

static const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };
static const struct timespec none;

static struct pollfd named(int fd)
{
	return (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void polls(void)
{
	struct pair pair = pair_open();
	struct pollfd entries[2] = { named(pair.client), named(-1) };

	SAY(poll(entries, 2, 0));
	SAY(poll(entries, 2, 10));
	SAY(ppoll(entries, 2, &moment, NULL));
	SAY(ppoll(entries, 2, &none, NULL));
	must((int)send(pair.server, "hello", 5, 0), "greet");
	SAY(poll(entries, 2, -1));
	SAY(ppoll(entries, 2, NULL, NULL));
	printf("revents: %#x, events: %#x, fd kept: %d\n", (unsigned int)entries[0].revents,
			(unsigned int)entries[0].events, entries[0].fd == pair.client);
	pair_close(pair);
}

static void selects(void)
{
	struct pair pair = pair_open();
	struct timeval wait = { .tv_usec = 10 * 1000 };
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(pair.client, &reads);
	SAY(select(pair.client + 1, &reads, NULL, NULL, &wait));
	printf("set: %d, left: %ld\n", FD_ISSET(pair.client, &reads) != 0, (long)wait.tv_usec);
	FD_SET(pair.client, &reads);
	SAY(pselect(pair.client + 1, &reads, NULL, NULL, &moment, NULL));
	must((int)send(pair.server, "hello", 5, 0), "greet");
	FD_SET(pair.client, &reads);
	SAY(select(pair.client + 1, &reads, NULL, NULL, NULL));
	SAY(pselect(pair.client + 1, &reads, NULL, NULL, NULL, NULL));
	printf("set: %d\n", FD_ISSET(pair.client, &reads) != 0);
	pair_close(pair);
}

static void sleeps(void)
{
	struct timeval wait = { .tv_usec = 10 * 1000 };

	SAY(select(0, NULL, NULL, NULL, &wait));
	SAY(pselect(0, NULL, NULL, NULL, &moment, NULL));
	SAY(poll(NULL, 0, 10));
	SAY(ppoll(NULL, 0, &moment, NULL));
}

/* With a connection at hand, so that there is something to look for. */
static void bad_arguments(void)
{
	struct pair pair = pair_open();
	struct timespec wrong = { .tv_nsec = -1 };
	struct timeval wait = { .tv_usec = 10 * 1000 };
	struct pollfd entry = named(pair.client);
	fd_set reads;

	FD_ZERO(&reads);
	SAY(poll(NULL, 1, 10));
	SAY(poll((struct pollfd *)8, 1, 10));
	SAY(poll(&entry, 1ul << 40, 10));
	SAY(ppoll(&entry, 1, &wrong, NULL));
	SAY(select(-1, &reads, NULL, NULL, &wait));
	SAY(select(10, (fd_set *)8, NULL, NULL, &wait));
	SAY(pselect(10, &reads, NULL, NULL, &wrong, NULL));
	pair_close(pair);
	entry.revents = 0;
	SAY(poll(&entry, 1, 10));
	printf("revents: %#x\n", (unsigned int)entry.revents);
	FD_SET(pair.client, &reads);
	SAY(select(pair.client + 1, &reads, NULL, NULL, &wait));
}

static void on_alarm(int number)
{
	(void)number;
}

static void interrupted(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	/* Again and again: on a slow machine the first may come before the wait. */
	struct itimerspec soon = { moment, moment };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct pair pair = pair_open();
	struct pollfd entry = named(pair.client);
	timer_t timer;

	must(sigaction(SIGUSR1, &action, NULL), "handle a signal");
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "make a timer");
	must(timer_settime(timer, 0, &soon, NULL), "start a timer");
	SAY(poll(&entry, 1, -1));
	timer_delete(timer);
	pair_close(pair);
}

static bool took_at_least(const struct timespec *began, long ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - began->tv_sec) * 1000000000l + now.tv_nsec - began->tv_nsec >= ns;
}

/* Below a millisecond, which is no time at all in poll's units. */
static void brief_waits(void)
{
	struct pair pair = pair_open();
	struct pollfd entry = named(pair.client);
	struct timespec brief = { .tv_nsec = 300000 }, began;
	struct timeval micro = { .tv_usec = 300 };
	fd_set reads;

	clock_gettime(CLOCK_MONOTONIC, &began);
	SAY(ppoll(&entry, 1, &brief, NULL));
	printf("%d\n", took_at_least(&began, 300000));
	FD_ZERO(&reads);
	FD_SET(pair.client, &reads);
	clock_gettime(CLOCK_MONOTONIC, &began);
	SAY(select(pair.client + 1, &reads, NULL, NULL, &micro));
	printf("%d\n", took_at_least(&began, 300000));
	FD_SET(pair.client, &reads);
	clock_gettime(CLOCK_MONOTONIC, &began);
	SAY(pselect(pair.client + 1, &reads, NULL, NULL, &brief, NULL));
	printf("%d\n", took_at_least(&began, 300000));
	printf("timeout: %ld\n", brief.tv_nsec);
	pair_close(pair);
}

static void say_events(const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++)
		printf("event: %#x of %u\n", events[i].events, events[i].data.u32);
}

static void epolls(void)
{
	struct pair pair = pair_open();
	struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLET, { .u32 = 1 } }, events[4];
	int epoll = (int)SAY(epoll_create1(0));

	SAY(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.client, &event));
	SAY(epoll_ctl(epoll, EPOLL_CTL_ADD, pair.client, &event));
	say_events(events, (int)SAY(epoll_wait(epoll, events, 4, -1)));
	SAY(epoll_wait(epoll, events, 4, 0));
	SAY(epoll_wait(epoll, events, 4, 10));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	say_events(events, (int)SAY(epoll_pwait(epoll, events, 4, -1, NULL)));
	SAY(epoll_pwait2(epoll, events, 4, &moment, NULL));
	event.events = EPOLLIN | EPOLLONESHOT;
	SAY(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.client, &event));
	say_events(events, (int)SAY(epoll_wait(epoll, events, 4, -1)));
	SAY(epoll_wait(epoll, events, 4, 0));
	SAY(epoll_ctl(epoll, EPOLL_CTL_MOD, pair.client, &event));
	SAY(shutdown(pair.client, SHUT_RDWR));
	say_events(events, (int)SAY(epoll_wait(epoll, events, 4, -1)));
	SAY(close(pair.client));
	SAY(epoll_wait(epoll, events, 4, 0));
	SAY(epoll_ctl(epoll, EPOLL_CTL_DEL, pair.client, NULL));
	SAY(epoll_wait(-1, events, 4, 0));
	SAY(epoll_wait(pair.server, events, 4, 0));
	SAY(close(epoll));
	SAY(close((int)SAY(epoll_create(1))));
	close(pair.server);
}

/* Sets that are larger than the type, as programs with many descriptors make them. */
static void large_set(void)
{
	struct pair pair = pair_open();
	size_t size = 2048 / 8;
	fd_set *reads = calloc(1, size);
	int high = must(dup2(pair.client, 1500), "move a socket");
	unsigned long *words = (unsigned long *)reads, *word = &words[1500 / 64];

	must((int)send(pair.server, "hello", 5, 0), "greet");
	*word = 1ul << 1500 % 64;
	SAY(select(high + 1, reads, NULL, NULL, NULL));
	printf("set: %d\n", *word == 1ul << 1500 % 64);
	SAY(recv(high, reads, 5, MSG_WAITALL));
	words[0] = 0;
	SAY(pselect(high + 1, reads, NULL, NULL, &moment, NULL));
	printf("set: %d\n", *word != 0);
	close(high);
	pair_close(pair);
	free(reads);
}

static void many_entries(void)
{
	static struct pollfd entries[1000];
	struct pair pair = pair_open();

	for (size_t i = 0; i < COUNT(entries); i++)
		entries[i] = named(i % 3 ? pair.client : -1);
	SAY(poll(entries, COUNT(entries), 1));
	must((int)send(pair.server, "hello", 5, 0), "greet");
	SAY(poll(entries, COUNT(entries), -1));
	pair_close(pair);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(polls),
		SCENE(selects),
		SCENE(sleeps),
		SCENE(bad_arguments),
		SCENE(interrupted),
		SCENE(brief_waits),
		SCENE(epolls),
		SCENE(large_set),
		SCENE(many_entries),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
