/* SPDX-License-Identifier: MIT */
/* Children of all kinds, of programs that have threads and connections; daemons. */
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define THREADS		8
#define FORKS		500
#define VFORKS		60
#define SECONDS_AT_MOST 50

/* Refused connects, calls that are answered, and what was wrong with either. */
static _Atomic unsigned long attempts, calls, wrong;
static _Atomic bool is_over;
static struct sockaddr_in dead, live;

static void attempt(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool is_refused = connect(fd, as_sockaddr(&dead), sizeof(dead)) == -1 &&
			errno == ECONNREFUSED;

	close(fd);
	atomic_fetch_add(&attempts, 1);
	if (!is_refused)
		atomic_fetch_add(&wrong, 1);
}

static void call(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[4];

	if (connect(fd, as_sockaddr(&live), sizeof(live)) || recv(fd, text, 4, MSG_WAITALL) != 4)
		atomic_fetch_add(&wrong, 1);
	close(fd);
	atomic_fetch_add(&calls, 1);
}

static void *calls_all_the_time(void *unused)
{
	while (!is_over) {
		attempt();
		call();
	}
	return unused;
}

/* Until it is cancelled: accept() is where that happens. */
static void *serves(void *unused)
{
	for (;;) {
		int fd = must(accept(listener(), NULL, NULL), "accept");

		send(fd, "pong", 4, MSG_NOSIGNAL);
		close(fd);
	}
	return unused;
}

struct load {
	pthread_t server, threads[THREADS];
};

static void load_begin(struct load *load)
{
	dead = address_refusing();
	live = address_listening();
	must(-pthread_create(&load->server, NULL, serves, NULL), "start a thread");
	for (int i = 0; i < THREADS; i++)
		must(-pthread_create(&load->threads[i], NULL, calls_all_the_time, NULL),
				"start a thread");
}

static void load_end(struct load *load)
{
	is_over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(load->threads[i], NULL);
	pthread_cancel(load->server);
	pthread_join(load->server, NULL);
}

static void say_attempts(unsigned long more, int failed)
{
	fprintf(stderr, "attempts %lu calls %lu port %d\n", attempts + more, calls,
			ntohs(dead.sin_port));
	printf("failed: %d, wrong: %lu\n", failed, wrong);
}

/* A child has its thread alone, in the middle of whatever the others were at. */
static int child_attempts(void)
{
	alarm(SECONDS_AT_MOST);
	wrong = 0;
	attempt();
	return wrong ? 1 : 0;
}

static pid_t fork_by_libc(void)
{
	return fork();
}

static pid_t fork_by_number(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t fork_by_clone3(void)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

static void forks_under_load(pid_t (*make)(void))
{
	struct load load;
	int failed = 0, status;
	pid_t child;

	load_begin(&load);
	for (int i = 0; i < FORKS; i++) {
		child = must(make(), "fork");
		if (child == 0)
			_exit(child_attempts());
		must(waitpid(child, &status, 0), "wait");
		failed += status != 0;
	}
	load_end(&load);
	say_attempts(FORKS, failed);
}

static void forks(void)
{
	forks_under_load(fork_by_libc);
}

static void forks_by_number(void)
{
	forks_under_load(fork_by_number);
}

static void forks_by_clone3(void)
{
	forks_under_load(fork_by_clone3);
}

/* The child lives in its parent's memory, and does what launchers do. */
static void vforks(void)
{
	struct load load;
	struct pair pair = pair_answered();
	int failed = 0, status, file = must(open("/dev/null", O_RDWR | O_CLOEXEC), "open");
	pid_t child;

	load_begin(&load);
	for (int i = 0; i < VFORKS; i++) {
		child = vfork();
		if (child == 0) {
			dup2(file, pair.client);
			connect(pair.server, as_sockaddr(&dead), sizeof(dead));
			close(pair.server);
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		must(waitpid(child, &status, 0), "wait");
		failed += status != 0;
	}
	load_end(&load);
	say_attempts(0, failed);
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	pair_close(pair);
	close(file);
}

static volatile int handled_fd;

/* As all do from here: one refused connect; and what the parent had open is closed. */
static void close_and_connect(int number)
{
	struct sockaddr_in address = dead;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)number;
	connect(fd, as_sockaddr(&address), sizeof(address));
	close(fd);
	close(handled_fd);
}

/* A signal that came while the child ran is handled in the parent before vfork() returns there. */
static void vfork_is_interrupted(void)
{
	struct pair pair = pair_answered();
	int status;
	pid_t child;

	dead = address_refusing();
	attempt();
	handled_fd = pair.client;
	signal(SIGUSR1, close_and_connect);
	child = vfork();
	if (child == 0) {
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	must(waitpid(child, &status, 0), "wait");
	must(open("/dev/null", O_RDWR), "open");
	attempt();
	SAY(fcntl(pair.client, F_GETFD));
	close(pair.client);
	close(pair.server);
}

static void spawn(const char *command)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, 1, 9);
	posix_spawn_file_actions_addclosefrom_np(&actions, 10);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	must(-posix_spawn(&child, "/bin/sh", &actions, &attributes, argv, environ), "spawn");
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	child_ended(command, child);
}

static void spawns(void)
{
	struct pair pair = pair_answered();
	FILE *stream;
	char line[64] = "";

	dead = address_refusing();
	attempt();
	attempt();
	spawn("exit 4");
	spawn("kill -TERM $$");
	spawn("echo to the ninth >&9");
	printf("system: %d\n", system("exit 6"));
	stream = popen("echo from a pipe", "r");
	printf("popen: %s", fgets(line, sizeof(line), stream));
	printf("pclose: %d\n", pclose(stream));
	attempt();
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, line, sizeof(line), 0));
	pair_close(pair);
}

/* The next program meets the same open circuit. */
static void executes(void)
{
	static const char connect_once[] = "import os, socket, sys\n"
		"s = socket.socket()\n"
		"print(s.connect_ex(('127.0.0.1', int(sys.argv[1]))), flush=True)\n"
		"os._exit(0)";
	char port[8];
	pid_t child;

	dead = address_refusing();
	attempt();
	snprintf(port, sizeof(port), "%d", ntohs(dead.sin_port));
	child = fork();
	if (child == 0) {
		attempt();
		execl("/usr/bin/python3", "python3", "-c", connect_once, port, (char *)NULL);
		_exit(127);
	}
	child_ended("python", child);
}

/* Daemons: they say what came of them in a file, since they have closed all else. */

static const char *report_path;

/* The program's listener may be closed. */
static struct pair pair_of_its_own(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = stream_socket(0);
	struct pair pair = { .client = stream_socket(0) };

	must(bind(fd, as_sockaddr(&address), length), "bind");
	must(listen(fd, 1), "listen");
	must(getsockname(fd, as_sockaddr(&address), &length), "ask for a name");
	must(connect(pair.client, as_sockaddr(&address), length), "connect");
	pair.server = must(accept(fd, NULL, NULL), "accept");
	close(fd);
	return pair;
}

static void daemon_lives(void)
{
	FILE *report;
	char text[4];
	struct pair pair;
	long results[3];

	alarm(SECONDS_AT_MOST);
	pair = pair_of_its_own();
	for (size_t i = 0; i < COUNT(results); i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		results[i] = connect(fd, as_sockaddr(&dead), sizeof(dead)) ? errno : 0;
		close(fd);
	}
	send(pair.client, "ping", 4, MSG_NOSIGNAL);
	server_answers(pair, 4);
	recv(pair.client, text, sizeof(text), 0);
	report = fopen(report_path, "we");
	fprintf(report, "%ld %ld %ld %.4s\n", results[0], results[1], results[2], text);
	fclose(report);
	_exit(0);
}

static void daemon_of_libc(void)
{
	must(daemon(1, 0), "become a daemon");
	daemon_lives();
}

static void closes_by_range(void)
{
	close_range(0, ~0u, 0);
}

static void closes_one_by_one(void)
{
	for (int fd = 0; fd < 4096; fd++)
		close(fd);
}

static void closes_from(void)
{
	closefrom(0);
}

static void (*close_all)(void);

static void daemon_by_hand(void)
{
	if (fork())
		_exit(0);
	setsid();
	if (fork())
		_exit(0);
	close_all();
	open("/dev/null", O_RDWR);
	dup2(0, 1);
	dup2(0, 2);
	daemon_lives();
}

static void daemonises(void (*become)(void))
{
	char path[] = "report-XXXXXX", line[64] = "";
	struct pair pair = pair_answered();
	FILE *report;
	pid_t child;

	must(mkstemp(path), "make a file");
	report_path = path;
	dead = address_refusing();
	child = fork();
	if (child == 0)
		become();
	child_ended("parent", child);
	while (!strchr(line, '\n')) {
		usleep(1000);
		report = fopen(path, "re");
		if (report && !fgets(line, sizeof(line), report))
			line[0] = '\0';
		if (report)
			fclose(report);
	}
	printf("daemon: %s", line);
	unlink(path);
	pair_close(pair);
}

static void daemons(void)
{
	static void (*const closers[])(void) = { closes_by_range, closes_one_by_one, closes_from };

	daemonises(daemon_of_libc);
	for (size_t i = 0; i < COUNT(closers); i++) {
		close_all = closers[i];
		daemonises(daemon_by_hand);
	}
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(forks),
		SCENE(forks_by_number),
		SCENE(forks_by_clone3),
		SCENE(vforks),
		SCENE(vfork_is_interrupted),
		SCENE(spawns),
		SCENE(executes),
		SCENE(daemons),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
