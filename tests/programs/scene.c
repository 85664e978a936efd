/* SPDX-License-Identifier: MIT */
#include "tests/programs/scene.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_AT_MOST 60

static int listening = -1;
static in_port_t wanted_port;

int must(int result, const char *what)
{
	if (result >= 0)
		return result;
	printf("cannot %s: %s\n", what, strerrorname_np(errno));
	exit(99);
}

long said(const char *call, long result)
{
	printf("%s = %ld %s\n", call, result, errno ? strerrorname_np(errno) : "0");
	return result;
}

static struct sockaddr_in loopback(in_port_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	must(getsockname(fd, as_sockaddr(&address), &length), "ask for a name");
	return address;
}

int stream_socket(int flags)
{
	return must(socket(AF_INET, SOCK_STREAM | flags, 0), "make a socket");
}

struct sockaddr_in address_refusing(void)
{
	static int bound = -1;
	struct sockaddr_in any = loopback(0);

	if (bound < 0) {
		bound = stream_socket(SOCK_CLOEXEC);
		must(bind(bound, as_sockaddr(&any), sizeof(any)), "bind");
	}
	return name_of(bound);
}

int listener(void)
{
	struct sockaddr_in address = loopback(wanted_port);
	int on = 1;

	if (listening >= 0)
		return listening;
	listening = stream_socket(SOCK_CLOEXEC);
	setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(listening, as_sockaddr(&address), sizeof(address)), "bind");
	must(listen(listening, 64), "listen");
	return listening;
}

struct sockaddr_in address_listening(void)
{
	return name_of(listener());
}

struct pair pair_open(void)
{
	struct sockaddr_in address = address_listening();
	struct pair pair;

	pair.client = stream_socket(0);
	must(connect(pair.client, as_sockaddr(&address), sizeof(address)), "connect");
	pair.server = must(accept(listening, NULL, NULL), "accept");
	return pair;
}

void pair_close(struct pair pair)
{
	close(pair.client);
	close(pair.server);
}

void server_answers(struct pair pair, size_t size)
{
	char text[4096];

	while (size > 0) {
		ssize_t got = must((int)recv(pair.server, text,
				size < sizeof(text) ? size : sizeof(text), 0), "read a request");

		if (got == 0)
			break;
		size -= (size_t)got;
	}
	must((int)send(pair.server, "pong", 4, MSG_NOSIGNAL), "answer");
}

void child_ended(const char *what, int pid)
{
	int status;

	must(waitpid(pid, &status, 0), "wait");
	if (WIFSIGNALED(status))
		printf("%s: signal %s\n", what, sigabbrev_np(WTERMSIG(status)));
	else
		printf("%s: exit %d\n", what, WEXITSTATUS(status));
}

int scenes_play(const struct scene *scenes, size_t count, int argc, char *argv[])
{
	bool played = false;

	alarm(SECONDS_AT_MOST);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2)
		wanted_port = htons((in_port_t)atoi(argv[2]));
	for (size_t i = 0; argc > 1 && i < count; i++) {
		if (strcmp(argv[1], "all") && strcmp(argv[1], scenes[i].name))
			continue;
		printf("-- %s\n", scenes[i].name);
		scenes[i].play();
		played = true;
	}
	if (played)
		return 0;
	fprintf(stderr, "usage: %s all|", argv[0]);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "%s%s", scenes[i].name, i + 1 < count ? "|" : " [PORT]\n");
	return 2;
}
