/* SPDX-License-Identifier: MIT */
/*
 * Signal handlers that connect, send, receive and close, in the middle of whatever the program does
 * itself. Prints how many exchanges and refused connects there were, to be compared with what was
 * counted. Each side has a listener and descriptors of its own.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define INTERVAL_US   100
#define ROUNDS        1500
#define ALARMS	      800
#define TICKS	      60 /* of the kernel's; they come much more seldom */
#define THREADS       3
#define THREAD_ROUNDS 1200
#define EVERY         4 /* round has an exchange beside its refused connect */

struct side {
	int listener;
	struct sockaddr_in address, dead;
	unsigned int rounds;
};

static _Atomic unsigned long exchanges, refused, wrong;
static _Thread_local struct side of_thread, of_handler;

static void side_open(struct side *side)
{
	socklen_t length = sizeof(side->address);

	side->listener = stream_socket(0);
	side->address = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	side->dead = address_refusing();
	must(bind(side->listener, as_sockaddr(&side->address), length), "bind");
	must(listen(side->listener, 8), "listen");
	must(getsockname(side->listener, as_sockaddr(&side->address), &length), "ask for a name");
	side->rounds = 0;
}

static void check(bool is_right)
{
	if (!is_right)
		atomic_fetch_add(&wrong, 1);
}

static void exchange(int client, int server)
{
	char text[4];

	check(send(client, "ping", 4, MSG_NOSIGNAL) == 4);
	check(recv(server, text, 4, MSG_WAITALL) == 4 && !memcmp(text, "ping", 4));
	check(send(server, "pong", 4, MSG_NOSIGNAL) == 4);
	check(recv(client, text, 4, MSG_WAITALL) == 4 && !memcmp(text, "pong", 4));
	atomic_fetch_add(&exchanges, 1);
}

static void side_talks(struct side *side)
{
	int client = socket(AF_INET, SOCK_STREAM, 0), server;

	check(connect(client, as_sockaddr(&side->address), sizeof(side->address)) == 0);
	server = accept(side->listener, NULL, NULL);
	exchange(client, server);
	exchange(client, server);
	check(close(client) == 0);
	check(close(server) == 0);
}

static void side_is_refused(struct side *side)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	check(connect(fd, as_sockaddr(&side->dead), sizeof(side->dead)) == -1 &&
			errno == ECONNREFUSED);
	check(close(fd) == 0);
	atomic_fetch_add(&refused, 1);
}

static void side_round(struct side *side)
{
	side_is_refused(side);
	if (side->rounds++ % EVERY == 0)
		side_talks(side);
}

static void handle(int number)
{
	int kept = errno;
	char name[16] = "";

	(void)number;
	prctl(PR_GET_NAME, name);
	/* Not on a thread that the program did not make. */
	check(of_handler.listener != 0 && !strcmp(name, "storm"));
	if (of_handler.listener)
		side_round(&of_handler);
	errno = kept;
}

static void handler_install(int number)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	prctl(PR_SET_NAME, "storm");
	sigfillset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

static void say_counts(void)
{
	printf("exchanges %lu refused %lu wrong %lu\n", exchanges, refused, wrong);
}

static void storm_with(int which, int number, unsigned int runs)
{
	struct itimerval interval = { { 0, INTERVAL_US }, { 0, INTERVAL_US } };
	struct itimerval none = { 0 };

	side_open(&of_thread);
	side_open(&of_handler);
	handler_install(number);
	setitimer(which, &interval, NULL);
	while (of_thread.rounds < ROUNDS || of_handler.rounds < runs)
		side_round(&of_thread);
	setitimer(which, &none, NULL);
	signal(number, SIG_DFL);
	say_counts();
}

static void alarms(void)
{
	alarm(0);
	storm_with(ITIMER_REAL, SIGALRM, ALARMS);
}

static void virtual_alarms(void)
{
	storm_with(ITIMER_VIRTUAL, SIGVTALRM, TICKS);
}

/* A storm of its own for the calling thread. */
static timer_t storm_begins(int number)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number };
	struct itimerspec interval = { { 0, INTERVAL_US * 1000 }, { 0, INTERVAL_US * 1000 } };
	timer_t timer;

	event._sigev_un._tid = gettid();
	must(timer_create(CLOCK_MONOTONIC, &event, &timer), "make a timer");
	timer_settime(timer, 0, &interval, NULL);
	return timer;
}

/* Where a lock of libc is held at most times. */
static void allocate(unsigned int round)
{
	void *memory[8];

	for (unsigned int i = 0; i < COUNT(memory); i++)
		memory[i] = malloc(2000 + (round * 7 + i) % 50 * 4096);
	for (unsigned int i = 0; i < COUNT(memory); i++)
		free(memory[i]);
}

static void *nothing(void *argument)
{
	return argument;
}

static void *storm_in_thread(void *number)
{
	timer_t timer;
	pthread_t other;

	prctl(PR_SET_NAME, "storm");
	side_open(&of_thread);
	side_open(&of_handler);
	timer = storm_begins(*(int *)number);
	while (of_thread.rounds < THREAD_ROUNDS) {
		side_round(&of_thread);
		allocate(of_thread.rounds);
		if (of_thread.rounds % 16 == 0) {
			check(pthread_create(&other, NULL, nothing, NULL) == 0);
			pthread_join(other, NULL);
		}
	}
	timer_delete(timer);
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	int number = SIGRTMIN;

	address_refusing();
	handler_install(number);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, storm_in_thread, &number);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	say_counts();
}

static volatile sig_atomic_t handled;

static void count(int number)
{
	(void)number;
	handled++;
}

/* All of the program's threads block the signal: it must stay pending. */
static void blocked_everywhere(void)
{
	struct sockaddr_in dead = address_refusing();
	pthread_t other;
	sigset_t set, pending;
	int fd = stream_socket(0);

	pthread_create(&other, NULL, nothing, NULL);
	pthread_join(other, NULL);
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR1, count);
	signal(SIGPROF, count);
	for (int i = 0; i < 20; i++) {
		SAY(connect(fd, as_sockaddr(&dead), sizeof(dead)));
		kill(getpid(), SIGUSR1);
		kill(getpid(), SIGPROF);
	}
	sigpending(&pending);
	printf("handled %d, pending %d %d\n", (int)handled, sigismember(&pending, SIGUSR1),
			sigismember(&pending, SIGPROF));
	close(fd);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(alarms),
		SCENE(virtual_alarms),
		SCENE(threads),
		SCENE(blocked_everywhere),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
