/* SPDX-License-Identifier: MIT */
/* Threads that open and close what others look at. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define WORKERS 8
#define ROUNDS 40

static atomic_int running, wrong;

static void check(bool is_right)
{
	if (!is_right)
		wrong++;
}

/* Half of them connect to nobody. */
static void *connects(void *argument)
{
	struct sockaddr_in live = address_listening(), dead = address_refusing();
	bool is_refused = argument;

	for (int i = 0; i < ROUNDS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		int result = connect(fd, as_sockaddr(is_refused ? &dead : &live), sizeof(live));

		check(is_refused ? result == -1 && errno == ECONNREFUSED : result == 0);
		check(close(fd) == 0);
	}
	running--;
	return NULL;
}

/* Whoever closed twice, or another's number, would take the file from under it. */
static void *opens_file(void *argument)
{
	(void)argument;
	for (int i = 0; i < WORKERS * ROUNDS; i++) {
		struct stat now;
		int fd = open("/dev/null", O_RDWR);

		check(fd >= 0);
		check(fstat(fd, &now) == 0 && now.st_rdev == makedev(1, 3));
		check(write(fd, "ping", 4) == 4);
		check(fstat(fd, &now) == 0 && now.st_rdev == makedev(1, 3));
		check(close(fd) == 0);
	}
	return NULL;
}

/* Nobody accepts: who waits in the queue is connected all the same. */
static void accept_all(void)
{
	struct pollfd entry = { .fd = listener(), .events = POLLIN };

	while (running > 0 || poll(&entry, 1, 0) == 1)
		if (poll(&entry, 1, 10) == 1)
			close(accept(listener(), NULL, NULL));
}

static void many_connect_and_close(void)
{
	pthread_t workers[WORKERS], opener;

	address_refusing();
	running = WORKERS;
	for (size_t i = 0; i < WORKERS; i++)
		pthread_create(&workers[i], NULL, connects, i % 2 ? workers : NULL);
	pthread_create(&opener, NULL, opens_file, NULL);
	accept_all();
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	pthread_join(opener, NULL);
	printf("wrong: %d\n", wrong);
}

struct reader {
	int fd;
	_Atomic pid_t tid;
	ssize_t result;
	int error;
};

static void *reads(void *argument)
{
	struct reader *reader = argument;
	char text[8];

	reader->tid = (pid_t)syscall(SYS_gettid);
	reader->result = recv(reader->fd, text, sizeof(text), 0);
	reader->error = errno;
	return NULL;
}

static pthread_t start_reader(struct reader *reader)
{
	pthread_t thread;

	pthread_create(&thread, NULL, reads, reader);
	scene_marks("pauses", "");
	while (!reader->tid)
		sched_yield();
	scene_marks("resumes", "");
	thread_sleeps(reader->tid);
	return thread;
}

static void on_signal(int number)
{
	(void)number;
}

static void wake(pthread_t thread, struct reader *reader)
{
	pthread_kill(thread, SIGUSR2);
	pthread_join(thread, NULL);
	printf("reader: %zd %s\n", reader->result, strerrorname_np(reader->error));
}

/* java closes under a reader so: it moves a file over the socket and wakes the reader. */
static void replaced_under_reader(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct pair pair = pair_open();
	struct reader reader = { .fd = pair.client };
	int marker = must(open("/dev/null", O_RDWR), "open");
	pthread_t thread;

	must(sigaction(SIGUSR2, &action, NULL), "handle a signal");
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	thread = start_reader(&reader);
	SAY(dup2(marker, pair.client));
	wake(thread, &reader);
	SAY(write(pair.client, "ping", 4));
	SAY(close(pair.client));
	close(marker);
	close(pair.server);
}

/* The reader's number is another connection's by the time it wakes. */
static void closed_under_reader(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct pair pair = pair_open(), next;
	struct reader reader = { .fd = pair.client };
	pthread_t thread;

	must(sigaction(SIGUSR2, &action, NULL), "handle a signal");
	SAY(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	thread = start_reader(&reader);
	SAY(close(pair.client));
	next = pair_open();
	printf("%s number\n", next.client == pair.client ? "the same" : "another");
	SAY(send(next.client, "ping", 4, MSG_NOSIGNAL));
	wake(thread, &reader);
	server_answers(next, 4);
	SAY(recv(next.client, &action, 8, 0));
	pair_close(next);
	close(pair.server);
}

static void shut_under_reader(void)
{
	struct pair pair = pair_open();
	struct reader reader = { .fd = pair.client };
	pthread_t thread = start_reader(&reader);

	SAY(shutdown(pair.client, SHUT_RD));
	pthread_join(thread, NULL);
	printf("reader: %zd\n", reader.result);
	pair_close(pair);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(many_connect_and_close),
		SCENE(replaced_under_reader),
		SCENE(closed_under_reader),
		SCENE(shut_under_reader),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
