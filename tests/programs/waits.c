/* SPDX-License-Identifier: MIT */
/* poll and select, with something to read, without, and with what cannot be. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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
	struct itimerspec soon = { .it_value = moment };
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

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(polls),
		SCENE(selects),
		SCENE(sleeps),
		SCENE(bad_arguments),
		SCENE(interrupted),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
