/* SPDX-License-Identifier: MIT */
/* Ends of processes, children that share memory, and what a process does to itself. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/scene.h"

static char text[64];

/* The parent's connection must be as it was. */
static void goes_on(struct pair pair)
{
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
}

/* What launchers do between vfork and exec. */
static void child_arranges_descriptors(void)
{
	struct pair pair = pair_open();
	int file = must(open("/dev/null", O_RDWR), "open");
	pid_t child;

	SAY(send(pair.client, "ping", 4, 0));
	child = vfork();
	if (child == 0) {
		dup2(file, pair.client);
		close(pair.client);
		close(pair.server);
		closefrom(3);
		_exit(3);
	}
	child_ended("child", child);
	goes_on(pair);
	close(file);
}

static void child_connects(void)
{
	struct sockaddr_in dead = address_refusing();
	struct pair pair = pair_open();
	int fd = stream_socket(0);
	pid_t child;

	SAY(send(pair.client, "ping", 4, 0));
	child = vfork();
	if (child == 0) {
		int result = connect(fd, as_sockaddr(&dead), sizeof(dead));

		_exit(result == -1 && errno == ECONNREFUSED ? 7 : 8);
	}
	child_ended("child", child);
	SAY(close(fd));
	goes_on(pair);
}

static void child_executes(void)
{
	struct pair pair = pair_open();
	pid_t child;

	SAY(send(pair.client, "ping", 4, 0));
	child = vfork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		_exit(127);
	}
	child_ended("child", child);
	goes_on(pair);
}

static void child_has_child(void)
{
	pid_t child = vfork();

	if (child == 0) {
		int status;
		pid_t grandchild = vfork();

		if (grandchild == 0)
			_exit(4);
		waitpid(grandchild, &status, 0);
		_exit(WEXITSTATUS(status) + 1);
	}
	child_ended("child of child", child);
	child = vfork();
	if (child == 0)
		_exit(6);
	child_ended("next child", child);
}

/* Each thread's own mark and return address. */
static void *has_children(void *argument)
{
	long *wrong = argument;

	for (int i = 0; i < 50; i++) {
		int status = -1;
		pid_t child = vfork();

		if (child == 0)
			_exit(i);
		waitpid(child, &status, 0);
		*wrong += WEXITSTATUS(status) != i;
	}
	return NULL;
}

static void threads_have_children(void)
{
	pthread_t threads[4];
	long wrong[COUNT(threads)] = { 0 };

	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, has_children, &wrong[i]);
	for (size_t i = 0; i < COUNT(threads); i++) {
		pthread_join(threads[i], NULL);
		printf("wrong: %ld\n", wrong[i]);
	}
}

static void leave_exit(void)
{
	exit(11);
}

static void leave_underscore(void)
{
	_exit(12);
}

static void leave_capital(void)
{
	_Exit(13);
}

static void leave_quick(void)
{
	quick_exit(14);
}

static void leave_syscall(void)
{
	syscall(SYS_exit_group, 15);
}

/* With a call open. */
static void ends(void)
{
	static const struct scene ways[] = {
		SCENE(leave_exit), SCENE(leave_underscore), SCENE(leave_capital),
		SCENE(leave_quick), SCENE(leave_syscall),
	};

	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct pair pair = pair_open();

			send(pair.client, "ping", 4, 0);
			ways[i].play();
		}
		child_ended(ways[i].name, child);
	}
}

static void forks(void)
{
	struct pair pair = pair_open();
	pid_t child;

	SAY(send(pair.client, "ping", 4, 0));
	child = fork();
	if (child == 0) {
		close(pair.client);
		close(pair.server);
		_exit(9);
	}
	child_ended("child", child);
	goes_on(pair);
}

static struct sock_filter allow_all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
static struct sock_fprog program = { COUNT(allow_all), allow_all };

static void filter_by_prctl(void)
{
	SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void filter_by_syscall(void)
{
	SAY(syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

static void filters(void)
{
	static const struct scene ways[] = { SCENE(filter_by_prctl), SCENE(filter_by_syscall) };

	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();

		if (child == 0) {
			struct sockaddr_in dead = address_refusing();
			int fd = stream_socket(0);

			ways[i].play();
			SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
			exit(0);
		}
		child_ended(ways[i].name, child);
	}
}

static void other_calls(void)
{
	char name[16] = "";
	unsigned int words[4];

	SAY(unshare(0));
	SAY(unshare(-1));
	SAY(setns(-1, 0));
	SAY(prctl(PR_SET_NAME, "scene"));
	SAY(prctl(PR_GET_NAME, name));
	printf("name: %s\n", name);
	SAY(prctl(-1, 1, 2, 3, 4));
	SAY(prctl(PR_SET_SECCOMP, 99, 0, 0, 0));
	SAY(syscall(-1));
	SAY(syscall(SYS_getppid) == getppid());
	SAY(syscall(SYS_getrandom, words, sizeof(words), 0));
	SAY(syscall(SYS_futex, words, 0, words[0] + 1, NULL, NULL, 0));
	SAY(syscall(SYS_read, -1, NULL, 0));
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(child_arranges_descriptors),
		SCENE(child_connects),
		SCENE(child_executes),
		SCENE(child_has_child),
		SCENE(threads_have_children),
		SCENE(ends),
		SCENE(forks),
		SCENE(filters),
		SCENE(other_calls),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
