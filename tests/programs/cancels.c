/* SPDX-License-Identifier: MIT */
/*
 * Calls that never return: the thread is cancelled or leaves in them, or a handler jumps out. The
 * server is 127.0.0.1 on a port that first refuses, then has a full backlog, and then answers; a
 * rule for that address with sleep=100ms makes what blocks the half-open probe. Any later call must
 * get through.
 */
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define SLEEP_MS   150 /* more than the rule's */
#define RETRY_MS   5
#define JUMPS      8
#define JUMP_US    5000
#define LOOKUP_JUMPS 2
#define LOOKUP_US  400000 /* it must not be left while libc reads its files */
#define CANCELLED  150

static struct sockaddr_in target;
static int target_fd;

static struct sockaddr_in loopback(uint32_t last, in_port_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last),
	};
}

static int try_connect(int fd, const struct sockaddr_in *address)
{
	return connect(fd, as_sockaddr(address), sizeof(*address));
}

static void wait_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Its circuit opens. */
static void target_refuses(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t length = sizeof(any);
	int fd = stream_socket(0);

	target_fd = stream_socket(0);
	must(bind(target_fd, as_sockaddr(&any), sizeof(any)), "bind");
	must(getsockname(target_fd, as_sockaddr(&any), &length), "ask for a name");
	target = loopback(1, any.sin_port);
	SAY(try_connect(fd, &target));
	SAY(try_connect(fd, &target));
	close(fd);
}

/* One connection fills it, made by an address that no rule knows. */
static void target_fills(void)
{
	struct sockaddr_in other = loopback(2, target.sin_port);

	must(listen(target_fd, 0), "listen");
	must(try_connect(stream_socket(0), &other), "fill the backlog");
	wait_ms(SLEEP_MS);
}

/* The server's end of `fd`, out of all that came. */
static int accept_of(int fd)
{
	struct sockaddr_in wanted, peer;
	socklen_t length = sizeof(wanted);
	int server;

	must(getsockname(fd, as_sockaddr(&wanted), &length), "ask for a name");
	do {
		length = sizeof(peer);
		server = must(accept(target_fd, as_sockaddr(&peer), &length), "accept");
	} while (peer.sin_port != wanted.sin_port);
	return server;
}

static void exchange(struct pair pair)
{
	char text[4];

	must((int)send(pair.client, "ping", 4, MSG_NOSIGNAL), "ask");
	server_answers(pair, 4);
	must((int)recv(pair.client, text, sizeof(text), 0), "read an answer");
}

/* Calls are refused until the lost probe's lease has ended, and not for ever. */
static void target_answers(void)
{
	struct pair pair = { -1, -1 };

	must(listen(target_fd, 64), "listen");
	must(accept(target_fd, NULL, NULL), "accept");
	for (;;) {
		pair.client = stream_socket(0);
		if (try_connect(pair.client, &target) == 0)
			break;
		close(pair.client);
		wait_ms(RETRY_MS);
	}
	pair.server = accept_of(pair.client);
	exchange(pair);
	printf("answered\n");
	pair_close(pair);
	close(target_fd);
}

/* Threads that go in the middle of a connect. */

static _Atomic pid_t blocked;

static void *blocks(void *type)
{
	int fd = stream_socket(0);

	pthread_setcanceltype(*(int *)type, NULL);
	blocked = gettid();
	SAY(try_connect(fd, &target));
	return NULL;
}

static pthread_t thread_blocks(int type)
{
	static int type_of_thread;
	pthread_t thread;

	blocked = 0;
	type_of_thread = type;
	pthread_create(&thread, NULL, blocks, &type_of_thread);
	while (!blocked)
		sched_yield();
	thread_sleeps(blocked);
	return thread;
}

static void cancelled_probe(int type)
{
	pthread_t thread;
	void *result;

	target_refuses();
	target_fills();
	thread = thread_blocks(type);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
	target_answers();
}

static void cancelled(void)
{
	cancelled_probe(PTHREAD_CANCEL_DEFERRED);
}

static void cancelled_asynchronously(void)
{
	cancelled_probe(PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void leave_thread(int number)
{
	(void)number;
	pthread_exit((void *)7);
}

static void left_by_handler(void)
{
	struct sigaction action = { .sa_handler = leave_thread };
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &action, NULL);
	target_refuses();
	target_fills();
	thread = thread_blocks(PTHREAD_CANCEL_DEFERRED);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &result);
	printf("left: %ld\n", (long)result);
	target_answers();
}

static _Atomic unsigned long refusals;
static struct sockaddr_in refusing;

/* Where a circuit is open, all of this is the library. */
static void *is_refused(void *fd)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;) {
		try_connect(*(int *)fd, &refusing);
		atomic_fetch_add(&refusals, 1);
	}
	return NULL;
}

/* At whatever instruction it is. */
static void cancelled_anywhere(void)
{
	int fd = stream_socket(0), wrong = 0;
	unsigned long seen;
	pthread_t thread;
	void *result;

	refusing = address_refusing();
	for (int i = 0; i < CANCELLED; i++) {
		seen = refusals;
		pthread_create(&thread, NULL, is_refused, &fd);
		while (refusals < seen + (unsigned long)i)
			sched_yield();
		pthread_cancel(thread);
		pthread_join(thread, &result);
		wrong += result != PTHREAD_CANCELED;
	}
	printf("wrong: %d\n", wrong);
	SAY(try_connect(fd, &refusing));
	close(fd);
	pair_close(pair_answered());
}

/* Jumps. */

static sigjmp_buf out;

static void jump(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void jumps_begin(long us)
{
	struct itimerval interval = { { 0, us }, { 0, us } };

	signal(SIGALRM, jump);
	setitimer(ITIMER_REAL, &interval, NULL);
}

static void jumps_end(void)
{
	struct itimerval none = { 0 };

	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_DFL);
}

static void jumps_out_of_connect(void)
{
	static volatile int jumps, fd = -1;

	target_refuses();
	target_fills();
	jumps = 0;
	sigsetjmp(out, 1);
	if (jumps++ == 0)
		jumps_begin(JUMP_US);
	/* Refused at once after the first, where a circuit is half-open: as often as it takes. */
	while (jumps <= JUMPS) {
		fd = stream_socket(0);
		try_connect(fd, &target);
		close(fd);
	}
	jumps_end();
	printf("jumps: %d\n", jumps - 1);
	target_answers();
}

static void jumps_out_of_recv(void)
{
	static volatile int jumps;
	static struct pair pair;
	static char text[8];

	jumps = 0;
	pair = pair_open();
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	sigsetjmp(out, 1);
	if (jumps++ == 0)
		jumps_begin(JUMP_US);
	if (jumps <= JUMPS)
		SAY(recv(pair.client, text, sizeof(text), 0));
	jumps_end();
	printf("jumps: %d\n", jumps - 1);
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	server_answers(pair, 4);
	SAY(recv(pair.client, text, sizeof(text), 0));
	pair_close(pair);
}

/* Wants a name server that never says a word. */
static void jumps_out_of_lookup(void)
{
	static volatile int jumps;
	struct addrinfo *list;

	jumps = 0;
	sigsetjmp(out, 1);
	if (jumps++ == 0)
		jumps_begin(LOOKUP_US);
	if (jumps <= LOOKUP_JUMPS)
		SAY(getaddrinfo("silent.test", "80", NULL, &list));
	jumps_end();
	printf("jumps: %d\n", jumps - 1);
	pair_close(pair_answered());
}

static void *looks_up(void *unused)
{
	struct addrinfo *list;

	blocked = gettid();
	SAY(getaddrinfo("silent.test", "80", NULL, &list));
	return unused;
}

static void cancelled_in_lookup(void)
{
	pthread_t thread;
	void *result;

	blocked = 0;
	pthread_create(&thread, NULL, looks_up, NULL);
	while (!blocked)
		sched_yield();
	thread_sleeps(blocked);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("cancelled: %d\n", result == PTHREAD_CANCELED);
	pair_close(pair_answered());
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(cancelled),
		SCENE(cancelled_asynchronously),
		SCENE(left_by_handler),
		SCENE(cancelled_anywhere),
		SCENE(jumps_out_of_connect),
		SCENE(jumps_out_of_recv),
		SCENE(jumps_out_of_lookup),
		SCENE(cancelled_in_lookup),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
