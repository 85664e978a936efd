/* SPDX-License-Identifier: MIT */
/*
 * Programs for whom a thread that they did not make is not harmless, and ends of processes that
 * have threads. What stdout gets is the same bare and with an open circuit; stderr tells of the
 * threads there are, for whoever wants to know whether one of ours was there.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define SECONDS_AT_MOST 30
#define SECONDS_PROMPT	5
#define WORKERS		4
#define ENDS		8

static char text[64];

static int threads_now(void)
{
	struct stat tasks;

	must(stat("/proc/self/task", &tasks), "look at the threads");
	return (int)tasks.st_nlink - 2;
}

static void say_threads(int own)
{
	fprintf(stderr, "%d threads, %d of them the program's\n", threads_now(), own);
}

static void *nothing(void *argument)
{
	return argument;
}

/* From then on libc takes the process for a threaded one. */
static void has_had_threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, nothing, NULL);
	pthread_join(thread, NULL);
}

/* The first opens the circuit, where there is one; the second meets it. */
static void circuit_opens(void)
{
	struct sockaddr_in dead = address_refusing();
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	close(fd);
}

static void threaded_circuit_opens(void)
{
	has_had_threads();
	circuit_opens();
	say_threads(1);
}

static void talk(struct pair pair)
{
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
}

/* A child that must end by itself, and soon. */
static void in_child(const char *name, void (*play)(void))
{
	struct timespec began, ended;
	pid_t child;

	clock_gettime(CLOCK_MONOTONIC, &began);
	child = fork();
	if (child == 0) {
		alarm(SECONDS_AT_MOST);
		play();
		_exit(98);
	}
	child_ended(name, child);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	if (ended.tv_sec - began.tv_sec > SECONDS_PROMPT)
		printf("%s: took %ld s\n", name, (long)(ended.tv_sec - began.tv_sec));
}

/* main leaves by pthread_exit. */

static pthread_t main_thread;

static void *outlives_main_and_exits(void *unused)
{
	struct pair pair;

	pthread_join(main_thread, NULL);
	circuit_opens();
	pair = pair_open();
	talk(pair);
	talk(pair);
	pair_close(pair);
	exit(31);
	return unused;
}

static void *outlives_main(void *unused)
{
	pthread_join(main_thread, NULL);
	circuit_opens();
	return unused;
}

static void last_words(void)
{
	printf("an exit handler\n");
	circuit_opens();
}

static void main_leaves(void *(*other)(void *))
{
	pthread_t thread;

	main_thread = pthread_self();
	atexit(last_words);
	pthread_create(&thread, NULL, other, NULL);
	circuit_opens();
	say_threads(2);
	pthread_exit(NULL);
}

static void leaves_one_that_exits(void)
{
	main_leaves(outlives_main_and_exits);
}

static void leaves_one_that_returns(void)
{
	main_leaves(outlives_main);
}

static void leaves_as_last(void)
{
	threaded_circuit_opens();
	pthread_exit(NULL);
}

static void main_by_pthread_exit(void)
{
	in_child("others go on", leaves_one_that_exits);
	in_child("another is the last", leaves_one_that_returns);
	in_child("main is the last", leaves_as_last);
}

/* Namespaces. */

#define KIND(flags) { #flags, flags }

static const struct kind {
	const char *name;
	int flags;
} kinds[] = {
	KIND(CLONE_NEWUSER | CLONE_NEWNS),
	KIND(CLONE_NEWUSER),
	KIND(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS),
	KIND(CLONE_NEWPID),
	KIND(CLONE_THREAD),
	KIND(CLONE_SIGHAND),
	KIND(CLONE_VM),
	KIND(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM),
};

static const struct kind *kind;

static void unshare_by_name(void)
{
	threaded_circuit_opens();
	SAY(unshare(kind->flags));
	circuit_opens();
	exit(0);
}

static void unshare_by_number(void)
{
	threaded_circuit_opens();
	SAY(syscall(SYS_unshare, kind->flags));
	circuit_opens();
	exit(0);
}

static void unshares(void)
{
	for (kind = kinds; kind < kinds + COUNT(kinds); kind++) {
		in_child(kind->name, unshare_by_name);
		in_child(kind->name, unshare_by_number);
	}
}

/* The kernel takes a while to let go of a thread. */
static void unshares_again_and_again(void)
{
	struct sockaddr_in dead = address_refusing();
	int fd = stream_socket(0), failed = 0;

	has_had_threads();
	for (int i = 0; i < 100; i++) {
		connect(fd, as_sockaddr(&dead), sizeof(dead));
		failed += unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) != 0;
	}
	printf("failed: %d\n", failed);
	close(fd);
}

static const char *joined;

static void setns_by_name(void)
{
	int fd = must(open(joined, O_RDONLY | O_CLOEXEC), "open a namespace");

	threaded_circuit_opens();
	SAY(setns(fd, 0));
	circuit_opens();
	exit(0);
}

static void setns_by_number(void)
{
	int fd = must(open(joined, O_RDONLY | O_CLOEXEC), "open a namespace");

	threaded_circuit_opens();
	SAY(syscall(SYS_setns, fd, 0));
	circuit_opens();
	exit(0);
}

/* Into its own ones: refused all the same where another thread shares the directory. */
static void joins(void)
{
	static const char *const paths[] = { "/proc/self/ns/mnt", "/proc/self/ns/net",
		"/proc/self/ns/user", "/proc/self/ns/pid" };

	for (size_t i = 0; i < COUNT(paths); i++) {
		joined = paths[i];
		in_child(joined, setns_by_name);
		in_child(joined, setns_by_number);
	}
}

/* setuid() asks every thread that libc knows, and waits for all of them. */
static void gives_up_privileges(void)
{
	threaded_circuit_opens();
	SAY(setresgid(65534, 65534, 65534));
	SAY(setresuid(65534, 65534, 65534));
	must(system("cat /proc/$PPID/task/*/status | grep -E '^(Uid|Gid)' | sort -u"), "look");
	circuit_opens();
	exit(0);
}

static _Atomic bool is_over;

static void *changes_user(void *unused)
{
	while (!is_over)
		must(seteuid(geteuid()), "stay the same");
	return unused;
}

/* While the thread that they have to ask comes and goes. */
static void stays_the_same(void)
{
	struct sockaddr_in dead = address_refusing();
	int fd = stream_socket(0);
	pthread_t threads[2];

	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, changes_user, NULL);
	for (int i = 0; i < 300; i++) {
		for (int j = 0; j < 100; j++)
			connect(fd, as_sockaddr(&dead), sizeof(dead));
		usleep(1000);
	}
	is_over = true;
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	close(fd);
	exit(0);
}

static void users(void)
{
	in_child("gives up privileges", gives_up_privileges);
	in_child("stays the same", stays_the_same);
}

/* No thread in a program that has none: libc would take locks it had spared. */
static void stays_single(void)
{
	for (int i = 0; i < 3; i++) {
		circuit_opens();
		printf("single %d, threads %d\n", __libc_single_threaded, threads_now());
	}
}

/* Ends, with calls open in other threads. */

static void *works(void *unused)
{
	struct sockaddr_in dead = address_refusing();

	for (;;) {
		struct sockaddr_in address = address_listening();
		int fd = socket(AF_INET, SOCK_STREAM, 0), live = socket(AF_INET, SOCK_STREAM, 0);

		connect(fd, as_sockaddr(&dead), sizeof(dead));
		connect(live, as_sockaddr(&address), sizeof(address));
		send(live, "ping", 4, MSG_NOSIGNAL);
		recv(live, &fd, 0, MSG_DONTWAIT);
		close(live);
		close(fd);
	}
	return unused;
}

static void *serves(void *unused)
{
	for (;;) {
		int fd = accept(listener(), NULL, NULL);

		if (fd >= 0)
			close(fd);
	}
	return unused;
}

static void workers_begin(void)
{
	pthread_t thread;

	address_refusing();
	listener();
	pthread_create(&thread, NULL, serves, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, works, NULL);
}

static void leave_exit(int code)
{
	exit(code);
}

static void leave_number(int code)
{
	syscall(SYS_exit_group, code);
}

static void (*const ways[])(int) = { leave_exit, _exit, _Exit, quick_exit, leave_number };
static int way, code;

static void *leaves(void *unused)
{
	ways[way](code);
	return unused;
}

static void thread_leaves(void)
{
	pthread_t thread;

	workers_begin();
	pthread_create(&thread, NULL, leaves, NULL);
	for (;;)
		pause();
}

static void exits_of_a_thread(void)
{
	for (int i = 0; i < ENDS * (int)COUNT(ways); i++) {
		way = i % (int)COUNT(ways);
		code = i;
		in_child("thread", thread_leaves);
	}
}

static void main_returns_while_threads_work(void)
{
	workers_begin();
	exit(code);
}

static void exits_of_main(void)
{
	for (code = 0; code < ENDS; code++)
		in_child("main", main_returns_while_threads_work);
}

static void codes(void)
{
	int wrong = 0, status;

	for (code = 0; code < 256; code++) {
		pid_t child = fork();

		if (child == 0) {
			struct pair pair = pair_open();

			send(pair.client, "ping", 4, 0);
			ways[code % (int)COUNT(ways)](code);
		}
		must(waitpid(child, &status, 0), "wait");
		wrong += !WIFEXITED(status) || WEXITSTATUS(status) != code;
	}
	printf("wrong: %d\n", wrong);
}

static int deadly;

static void dies(void)
{
	struct rlimit none = { 0, 0 };
	struct pair pair = pair_open();

	setrlimit(RLIMIT_CORE, &none);
	threaded_circuit_opens();
	send(pair.client, "ping", 4, 0);
	signal(deadly, SIG_DFL);
	raise(deadly);
}

static void deaths(void)
{
	const int signals[] = { SIGKILL, SIGSEGV, SIGABRT, SIGTERM, SIGPIPE, SIGHUP,
		SIGRTMAX };

	for (size_t i = 0; i < COUNT(signals); i++) {
		deadly = signals[i];
		in_child("deadly", dies);
	}
}

static void exits_at_once(void)
{
	circuit_opens();
	exit(0);
}

/* What a child's destructors do is no matter of its parent. */
static void children_exit(void)
{
	struct pair pair = pair_open();

	/* The same for all. */
	address_refusing();
	talk(pair);
	for (int i = 0; i < 3; i++) {
		in_child("child", exits_at_once);
		talk(pair);
		circuit_opens();
	}
	pair_close(pair);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(main_by_pthread_exit),
		SCENE(unshares),
		SCENE(unshares_again_and_again),
		SCENE(joins),
		SCENE(users),
		SCENE(exits_of_a_thread),
		SCENE(exits_of_main),
		SCENE(codes),
		SCENE(deaths),
		SCENE(children_exit),
		SCENE(stays_single),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
