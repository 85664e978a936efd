/* SPDX-License-Identifier: MIT */
/*
 * Programs under a seccomp filter that kills for every system call but those that the program makes
 * itself: bare they live. The rule is to be `127.0.0.1 volume=1 sleep=100ms`.
 *
 *	program_filters under NUMBER,NUMBER... PROGRAM [ARGUMENT...]
 *
 * executes a program under a filter that is there from its start.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define SECONDS_AT_MOST 30
#define SLEEP_MS	150 /* more than the rule's */
#define NUMBERS_MAX	128

/* Not on newer machines. */
#ifndef SYS_dup2
#define SYS_dup2 SYS_dup3
#endif
#ifndef SYS_vfork
#define SYS_vfork SYS_clone
#endif

static const int own_calls[] = {
	SYS_write, SYS_socket, SYS_listen, SYS_connect, SYS_accept, SYS_sendto, SYS_recvfrom,
	SYS_close, SYS_clock_nanosleep, SYS_exit_group, SYS_exit, SYS_rt_sigreturn,
};
static const int descriptor_calls[] = {
	SYS_dup, SYS_dup3, SYS_dup2, SYS_close_range, SYS_shutdown,
};
static const int child_calls[] = {
	SYS_clone, SYS_vfork, SYS_wait4, SYS_set_robust_list, SYS_rt_sigprocmask, SYS_rseq,
};
static const int thread_calls[] = {
	SYS_futex, SYS_clone3, SYS_clone, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise,
	SYS_rt_sigprocmask, SYS_set_robust_list, SYS_rseq, SYS_sched_getaffinity, SYS_brk,
	SYS_getrandom, SYS_gettid,
};

static struct sock_filter filter[NUMBERS_MAX * 2 + 2];
static size_t filter_size;

static void filter_begin(void)
{
	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, nr));
	filter_size = 1;
}

static void filter_allow(int number)
{
	filter[filter_size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned int)number, 0, 1);
	filter[filter_size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static struct sock_fprog filter_end(void)
{
	filter[filter_size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
			SECCOMP_RET_KILL_PROCESS);
	return (struct sock_fprog){ (unsigned short)filter_size, filter };
}

#define ALLOW(numbers) \
	for (size_t at = 0; at < COUNT(numbers); at++) \
		filter_allow(numbers[at])

/* Ways to set one. */

static long by_prctl(struct sock_fprog *program)
{
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
}

static long by_number_of_prctl(struct sock_fprog *program)
{
	return syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0);
}

static long by_seccomp(struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
}

static long by_seccomp_of_all_threads(struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
}

static long (*const ways[])(struct sock_fprog *) = {
	by_prctl, by_number_of_prctl, by_seccomp, by_seccomp_of_all_threads,
};
static size_t way;

static void filter_set(void)
{
	struct sock_fprog program = filter_end();

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up privileges");
	must((int)ways[way](&program), "set a filter");
}

/* What is done under one. */

static struct sockaddr_in target;
static int target_fd;

static void target_make(void)
{
	socklen_t length = sizeof(target);

	target = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	target_fd = stream_socket(0);
	must(bind(target_fd, as_sockaddr(&target), sizeof(target)), "bind");
	must(getsockname(target_fd, as_sockaddr(&target), &length), "ask for a name");
}

static void sleep_passes(void)
{
	struct timespec duration = { .tv_nsec = SLEEP_MS * 1000000 };

	nanosleep(&duration, NULL);
}

static void connect_to_target(void)
{
	int fd = stream_socket(0);

	SAY(connect(fd, as_sockaddr(&target), sizeof(target)));
	close(fd);
}

static void talk(struct pair pair)
{
	char text[8];

	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
}

/* A circuit that opens, opens again, and closes; where nothing else fails that is as bare. */
static void calls_go_through_all_states(void)
{
	struct pair pair;

	connect_to_target();
	connect_to_target();
	sleep_passes();
	connect_to_target();
	connect_to_target();
	sleep_passes();
	must(listen(target_fd, 8), "listen");
	pair.client = stream_socket(0);
	SAY(connect(pair.client, as_sockaddr(&target), sizeof(target)));
	pair.server = must(accept(target_fd, NULL, NULL), "accept");
	talk(pair);
	talk(pair);
	pair_close(pair);
}

static void in_child(const char *name, void (*play)(void))
{
	pid_t child = fork();

	if (child == 0) {
		alarm(SECONDS_AT_MOST);
		target_make();
		filter_begin();
		ALLOW(own_calls);
		play();
		exit(5);
	}
	child_ended(name, child);
}

static void each_way(const char *name, void (*play)(void))
{
	for (way = 0; way < COUNT(ways); way++)
		in_child(name, play);
}

static void play_connections(void)
{
	struct pair pair = pair_answered();

	filter_set();
	talk(pair);
	calls_go_through_all_states();
	pair_close(pair);
}

static void connections(void)
{
	each_way("connections", play_connections);
}

static void *nothing(void *argument)
{
	return argument;
}

static void has_had_threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, nothing, NULL);
	pthread_join(thread, NULL);
}

static void say_threads(int own)
{
	struct stat tasks;

	must(stat("/proc/self/task", &tasks), "look at the threads");
	fprintf(stderr, "%d threads, %d of them the program's\n", (int)tasks.st_nlink - 2, own);
}

/* An open circuit in a threaded program: there may be a thread to be stopped first. */
static void play_after_threads(void)
{
	has_had_threads();
	connect_to_target();
	connect_to_target();
	say_threads(1);
	filter_set();
	calls_go_through_all_states();
}

static void after_threads(void)
{
	each_way("after threads", play_after_threads);
}

static void *works(void *count)
{
	struct sockaddr_in address = target;

	for (int i = 0; i < *(int *)count; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		connect(fd, as_sockaddr(&address), sizeof(address));
		close(fd);
	}
	return NULL;
}

/* Others start what they will while the filter is set, and go on under it. */
static void play_among_threads(void)
{
	static int count = 20000;
	pthread_t threads[3];

	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, works, &count);
	ALLOW(thread_calls);
	filter_set();
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
}

static void among_threads(void)
{
	each_way("among threads", play_among_threads);
}

/* Others only connect while it is set, and would die of whatever else is called on them. */
static void play_beside_threads(void)
{
	static const int calls[] = { SYS_futex };
	static int count = 1 << 30;
	pthread_t threads[3];

	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, works, &count);
	sleep_passes();
	ALLOW(calls);
	filter_set();
	sleep_passes();
	_exit(5);
}

#define TIMES_BESIDE 10

static void beside_threads(void)
{
	for (way = 0; ways[way] != by_seccomp_of_all_threads; way++)
		;
	for (int i = 0; i < TIMES_BESIDE; i++)
		in_child("beside threads", play_beside_threads);
}

static void play_descriptors(void)
{
	struct pair pair = pair_answered();
	int copy;

	ALLOW(descriptor_calls);
	filter_set();
	SAY(copy = dup(pair.client));
	SAY(dup2(pair.client, copy));
	SAY(dup3(pair.server, copy, 0));
	SAY(dup2(99, copy));
	SAY(shutdown(pair.client, SHUT_WR));
	SAY(close_range((unsigned int)copy, ~0u, 0));
	talk(pair);
	pair_close(pair);
	connect_to_target();
	connect_to_target();
}

static void descriptors(void)
{
	each_way("descriptors", play_descriptors);
}

static void play_children(void)
{
	int status;
	pid_t child;

	ALLOW(child_calls);
	filter_set();
	connect_to_target();
	child = fork();
	if (child == 0) {
		connect_to_target();
		exit(3);
	}
	waitpid(child, &status, 0);
	printf("fork: %#x\n", status);
	child = vfork();
	if (child == 0) {
		close(target_fd);
		_exit(4);
	}
	waitpid(child, &status, 0);
	printf("vfork: %#x\n", status);
	calls_go_through_all_states();
}

static void children(void)
{
	each_way("children", play_children);
}

/* The rule is to have per=rule, so that a refused connect opens the circuit of a connection that
 * lives: its next send is refused, and it is cut. */
static void play_kept_alive(void)
{
	struct pair pair = pair_answered();
	char text[8];

	filter_set();
	connect_to_target();
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
}

static void kept_alive(void)
{
	way = 0;
	in_child("kept alive", play_kept_alive);
}

/* Only asks what the kernel has: no filter is there. */
static void only_asks(void)
{
	unsigned int action = SECCOMP_RET_KILL_PROCESS;

	target_make();
	has_had_threads();
	SAY(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
	SAY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
	SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	connect_to_target();
	connect_to_target();
	say_threads(1);
}

/* Under the filter that was there from the start. */
static void from_start(void)
{
	target_make();
	talk(pair_answered());
	calls_go_through_all_states();
}

static int execute_under(char *numbers, char **argv)
{
	char *at = NULL;

	filter_begin();
	for (char *text = strtok_r(numbers, ",", &at); text; text = strtok_r(NULL, ",", &at))
		filter_allow(atoi(text));
	filter_set();
	execv(argv[0], argv);
	return 127;
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(connections),
		SCENE(after_threads),
		SCENE(among_threads),
		SCENE(beside_threads),
		SCENE(descriptors),
		SCENE(children),
		SCENE(kept_alive),
		SCENE(only_asks),
		SCENE(from_start),
	};

	if (argc > 3 && !strcmp(argv[1], "under"))
		return execute_under(argv[2], argv + 3);
	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
