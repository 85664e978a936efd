/* SPDX-License-Identifier: MIT */
/*
 * What goes on over exec, and what is handed over by it. The program executes itself: the second
 * life plays a part of its own, `then_NAME`, and reports what it was left with.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/report.h"
#include "tests/programs/scene.h"

/* As service managers count: the first descriptors that they hand over. */
#define CONNECTED 3
#define LISTENING 4
#define WATCHING 5
#define SERVER 6

static char *self;
static char text[64];

static void exchange(int client, int server)
{
	SAY(send(client, "ping", 4, MSG_NOSIGNAL));
	server_answers((struct pair){ client, server }, 4);
	SAY(recv(client, text, sizeof(text), 0));
}

/* In a child, so that the scenes go on. */
static void execute(const char *part, void (*arrange)(void))
{
	pid_t child = fork();

	if (child == 0) {
		if (arrange)
			arrange();
		execl(self, self, part, (char *)NULL);
		must(-1, "execute");
	}
	child_ended(part, child);
}

/* Above all that a program has, so that moving down hits nobody. */
static int moved_up(int fd)
{
	return must(fcntl(fd, F_DUPFD, 20), "move");
}

static void hand_over(struct pair pair, int listening, int watching)
{
	int client = moved_up(pair.client), server = moved_up(pair.server);

	listening = moved_up(listening);
	watching = moved_up(watching);
	must(dup2(client, CONNECTED), "move");
	must(dup2(listening, LISTENING), "move");
	must(dup2(watching, WATCHING), "move");
	must(dup2(server, SERVER), "move");
	closefrom(SERVER + 1);
}

/* No hook saw them connect, nor did any see them being born. */
static void arrange_strangers(void)
{
	int (*socket_of_libc)(int, int, int) = unseen("socket");
	struct pair pair = pair_open_unseen();
	int stranger = must(socket_of_libc(AF_INET, SOCK_STREAM, 0), "make a socket");

	must(listen(stranger, 4), "listen");
	hand_over(pair, stranger, must(open("/dev/null", O_RDWR), "open"));
}

/* As handed over by a service manager: a connection and a listener at 3 and 4. */
static void handed_over(void)
{
	execute("then_handed_over", arrange_strangers);
}

static void then_handed_over(void)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int fd = (int)SAY(socket(AF_INET, SOCK_STREAM, 0)), accepted;
	int (*connect_of_libc)(int, const struct sockaddr *, socklen_t) = unseen("connect");

	exchange(CONNECTED, SERVER);
	exchange(CONNECTED, SERVER);
	exchange(SERVER, CONNECTED);
	SAY(getsockname(LISTENING, as_sockaddr(&address), &length));
	SAY(connect_of_libc(fd, as_sockaddr(&address), sizeof(address)));
	accepted = (int)SAY(accept(LISTENING, NULL, NULL));
	exchange(fd, accepted);
	exchange(accepted, fd);
	SAY(shutdown(CONNECTED, SHUT_WR));
	SAY(recv(SERVER, text, sizeof(text), 0));
	SAY(close(CONNECTED));
	SAY(close(LISTENING));
}

/* A connection with a call open, and the epoll instance that watches it. */
static void arrange_watched(void)
{
	struct pair pair = pair_answered();
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	int watching = must(epoll_create1(0), "make an epoll instance");

	must(epoll_ctl(watching, EPOLL_CTL_ADD, pair.client, &event), "watch");
	must((int)send(pair.client, "ping", 4, MSG_NOSIGNAL), "ask");
	hand_over(pair, listener(), watching);
}

static void watched(void)
{
	execute("then_watched", arrange_watched);
}

static void then_watched(void)
{
	struct epoll_event event = { 0 };

	SAY(epoll_wait(WATCHING, &event, 1, 0));
	server_answers((struct pair){ CONNECTED, SERVER }, 4);
	SAY(epoll_wait(WATCHING, &event, 1, -1));
	printf("event: %#x of %u\n", event.events, event.data.u32);
	SAY(recv(CONNECTED, text, sizeof(text), 0));
	exchange(CONNECTED, SERVER);
	SAY(epoll_wait(WATCHING, &event, 1, 0));
	SAY(close(CONNECTED));
}

/* Nothing of the library's may be among what the next program has: connections and a refusal went
 * before. */
static void arrange_refused(void)
{
	struct sockaddr_in dead = address_refusing();
	struct pair pair = pair_answered();
	int fd = stream_socket(SOCK_CLOEXEC);

	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	fcntl(pair.server, F_SETFD, FD_CLOEXEC);
}

static void left_open(void)
{
	execute("then_left_open", arrange_refused);
}

static void then_left_open(void)
{
	SAY(open("/dev/null", O_RDONLY));
}

/* The standard descriptors are closed: what is opened next gets their numbers. */
static void arrange_none(void)
{
	pair_answered();
	closefrom(0);
}

static void none_open(void)
{
	int out = must(open("numbers", O_RDWR | O_CREAT | O_TRUNC, 0600), "open");

	execute("then_none_open", arrange_none);
	SAY(read(out, text, sizeof(text)) > 0);
	printf("%s", text);
	close(out);
	unlink("numbers");
}

/* By numbers alone: there is no stdout. A connect is refused on the way, which may be logged. */
static void then_none_open(void)
{
	struct sockaddr_in dead = address_refusing();
	int first = must(open("/dev/null", O_RDWR), "open");
	int fd = stream_socket(0);
	int result = connect(fd, as_sockaddr(&dead), sizeof(dead));
	int out = must(open("numbers", O_WRONLY), "open");

	dprintf(out, "open: %d, socket: %d, connect: %d, then: %d\n", first, fd, result, out);
	_exit(0);
}

static const struct scene parts[] = {
	SCENE(then_handed_over),
	SCENE(then_watched),
	SCENE(then_left_open),
	SCENE(then_none_open),
};

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(handed_over),
		SCENE(watched),
		SCENE(left_open),
		SCENE(none_open),
	};

	self = argv[0];
	for (size_t i = 0; argc > 1 && i < COUNT(parts); i++)
		if (!strcmp(argv[1], parts[i].name)) {
			/* What stdio needs, it has by now. */
			printf("as %s:\n", argv[1]);
			scene_marks("begins", parts[i].name);
			parts[i].play();
			scene_marks("ends", parts[i].name);
			report_state();
			return 0;
		}
	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
