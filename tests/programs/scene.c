/* SPDX-License-Identifier: MIT */
#include "tests/programs/scene.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/report.h"

#define SECONDS_AT_MOST 60

static int listening = -1;
static in_port_t wanted_port;

void scene_marks(const char *what, const char *name)
{
	char path[128];
	int kept = errno;

	snprintf(path, sizeof(path), "/scene/%s/%s", what, name);
	if (access(path, F_OK) == 0)
		must(-1, "mark a scene");
	errno = kept;
}

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
	must(listen(listening, 1024), "listen");
	return listening;
}

struct sockaddr_in address_listening(void)
{
	return name_of(listener());
}

/* The server's end of one client; others have been waiting since an earlier connect. */
static int accept_from(struct sockaddr_in client)
{
	struct sockaddr_in peer = { 0 };
	socklen_t length;
	int server = -1;

	do {
		if (server >= 0)
			close(server);
		length = sizeof(peer);
		server = must(accept(listening, as_sockaddr(&peer), &length), "accept");
	} while (peer.sin_port != client.sin_port);
	return server;
}

static struct pair pair_open_by(__typeof__(connect) *connects)
{
	struct sockaddr_in address = address_listening();
	struct pair pair;

	pair.client = stream_socket(0);
	must(connects(pair.client, as_sockaddr(&address), sizeof(address)), "connect");
	pair.server = accept_from(name_of(pair.client));
	return pair;
}

struct pair pair_open(void)
{
	return pair_open_by(connect);
}

struct pair pair_open_unseen(void)
{
	return pair_open_by((__typeof__(connect) *)unseen("connect"));
}

void pair_close(struct pair pair)
{
	close(pair.client);
	close(pair.server);
}

struct pair pair_answered(void)
{
	struct pair pair = pair_open();
	char text[4];

	must((int)send(pair.client, "ping", 4, MSG_NOSIGNAL), "ask");
	server_answers(pair, 4);
	must((int)recv(pair.client, text, sizeof(text), MSG_WAITALL), "read an answer");
	return pair;
}

void server_resets(struct pair pair)
{
	struct linger at_once = { .l_onoff = 1 };
	struct pollfd entry = { .fd = pair.client };

	setsockopt(pair.server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(pair.server);
	must(poll(&entry, 1, -1), "wait for a reset");
}

void server_answers(struct pair pair, size_t size)
{
	char text[4096];

	while (size > 0) {
		size_t part = size < sizeof(text) ? size : sizeof(text);
		ssize_t got = must((int)recv(pair.server, text, part, MSG_WAITALL), "be asked");

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

void thread_sleeps(int tid)
{
	char path[64], text[512];
	const char *state = NULL;

	scene_marks("pauses", "");
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (!state || state[2] != 'S') {
		int fd = must(open(path, O_RDONLY), "open a thread's state");
		ssize_t size = must((int)read(fd, text, sizeof(text) - 1), "read it");

		close(fd);
		text[size] = '\0';
		state = strrchr(text, ')');
	}
	scene_marks("resumes", "");
}

void *unseen(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *function = libc ? dlsym(libc, name) : NULL;

	must(function ? 0 : -1, "find a function of libc");
	dlclose(libc);
	return function;
}

void close_unseen(int fd)
{
	static int (*close_of_libc)(int);

	if (!close_of_libc)
		close_of_libc = unseen("close");
	must(close_of_libc(fd), "close");
}

/* Connections that an earlier scene left unaccepted. */
static void listener_drain(void)
{
	struct pollfd entry = { .fd = listening, .events = POLLIN };

	while (poll(&entry, 1, 0) == 1)
		close(must(accept(listening, NULL, NULL), "accept"));
}

static void scene_play(const struct scene *scene)
{
	listener_drain();
	printf("-- %s\n", scene->name);
	scene_marks("begins", scene->name);
	scene->play();
	scene_marks("ends", scene->name);
	report_state();
}

/* What main() returns. */
static int scenes_leave(void)
{
	report_process();
	fflush(stdout);
	scene_marks("leaves", "");
	return 0;
}

static int usage(const char *program, const struct scene *scenes, size_t count)
{
	fprintf(stderr, "usage: %s all|", program);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "%s%s", scenes[i].name, i + 1 < count ? "|" : " [PORT]\n");
	return 2;
}

int scenes_play(const struct scene *scenes, size_t count, int argc, char *argv[])
{
	bool played = false;

	alarm(SECONDS_AT_MOST);
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2)
		wanted_port = htons((in_port_t)atoi(argv[2]));
	if (argc > 1)
		listener();
	for (size_t i = 0; argc > 1 && i < count; i++) {
		if (strcmp(argv[1], "all") && strcmp(argv[1], scenes[i].name))
			continue;
		scene_play(&scenes[i]);
		played = true;
	}
	return played ? scenes_leave() : usage(argv[0], scenes, count);
}
