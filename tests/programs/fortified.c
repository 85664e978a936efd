/* SPDX-License-Identifier: MIT */
/* Built with _FORTIFY_SOURCE=2: calls that check the room of a buffer, and what an overrun does. */
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/programs/scene.h"

/* What the compiler cannot know, so that the check is left to run time. */
static volatile size_t eight = 8, nine = 9;
static volatile nfds_t one = 1, two = 2;
static const struct timespec none;

static struct pair asked(void)
{
	struct pair pair = pair_open();

	must((int)send(pair.client, "ping", 4, 0), "ask");
	server_answers(pair, 4);
	return pair;
}

static void fits(void)
{
	struct pair pair = asked();
	struct pollfd entries[1] = { { .fd = pair.client, .events = POLLIN } };
	char room[8];

	SAY(poll(entries, one, 1000));
	SAY(ppoll(entries, one, &none, NULL));
	SAY(read(pair.client, room, eight));
	pair_close(pair);
	pair = asked();
	SAY(recv(pair.client, room, eight, 0));
	pair_close(pair);
	pair = asked();
	SAY(recvfrom(pair.client, room, eight, 0, NULL, NULL));
	pair_close(pair);
}

static void over_read(void)
{
	struct pair pair = asked();
	char room[8];

	SAY(read(pair.client, room, nine));
}

static void over_recv(void)
{
	struct pair pair = asked();
	char room[8];

	SAY(recv(pair.client, room, nine, 0));
}

static void over_recvfrom(void)
{
	struct pair pair = asked();
	char room[8];

	SAY(recvfrom(pair.client, room, nine, 0, NULL, NULL));
}

static void over_poll(void)
{
	struct pair pair = asked();
	struct pollfd entries[1] = { { .fd = pair.client, .events = POLLIN } };

	SAY(poll(entries, two, 1000));
}

static void over_ppoll(void)
{
	struct pair pair = asked();
	struct pollfd entries[1] = { { .fd = pair.client, .events = POLLIN } };

	SAY(ppoll(entries, two, &none, NULL));
}

/* Each is the end of its process. */
static void overruns(void)
{
	static const struct scene ways[] = {
		SCENE(over_read), SCENE(over_recv), SCENE(over_recvfrom), SCENE(over_poll),
		SCENE(over_ppoll),
	};
	struct rlimit no_core = { 0, 0 };

	must(setrlimit(RLIMIT_CORE, &no_core), "forbid core files");
	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();

		if (child == 0) {
			ways[i].play();
			_exit(0);
		}
		child_ended(ways[i].name, child);
	}
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = { SCENE(fits), SCENE(overruns) };

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
