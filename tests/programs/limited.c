/* SPDX-License-Identifier: MIT */
/*
 * Sets a seccomp filter in the middle of calls that a rule may limit, and makes more under it; a
 * line for each says what it came to.
 *
 *	limited FILTER alone|all PORT SLOW_PORT BEFORE THREADS AFTER
 *
 * FILTER is a file with what the kernel is given, "" for none; it is set for this thread alone or
 * for all. The rest are words, with commas: what is done before, what threads are in the middle of,
 * and what is done after.
 *
 *	fresh	a connection to PORT, a request and its answer
 *	hold	another one on which nothing is asked
 *	drop	closes that one
 *	keep	a connection to PORT, which is kept
 *	kept	a request on that one
 *	slow	a connection to SLOW_PORT, a request and its answer
 *	rest	waits until all threads have done what they do
 *	good	looks good.example.test up
 *	silent	the same of a name for which no answer comes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX  16
#define FILTER_BYTES 32768
#define REQUEST	     "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

static int port, slow_port, held = -1, kept = -1;
static _Atomic int thread_ids[THREADS_MAX], ended;
static int threads;

static void say(const char *word, const char *what)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %s\n", word, what);

	if (write(1, line, (size_t)length) != length)
		_exit(98);
}

static int connect_to(int to)
{
	struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((in_port_t)to)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&peer, sizeof(peer))) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static const char *ask(int fd)
{
	char data[4096];
	ssize_t size;

	if (fd < 0 || send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) < 0)
		return strerrorname_np(errno);
	size = recv(fd, data, sizeof(data), 0);
	return size > 0 ? "answered" : size ? strerrorname_np(errno) : "ended";
}

static const char *ask_once(int to)
{
	int fd = connect_to(to);
	const char *what = ask(fd);

	if (fd >= 0)
		close(fd);
	return what;
}

static const char *look_up(const char *name)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;

	if (getaddrinfo(name, "80", &hints, &list))
		return "unknown";
	freeaddrinfo(list);
	return "found";
}

static const char *rest(void)
{
	while (atomic_load(&ended) < threads)
		usleep(1000);
	return "ended";
}

static const char *play(const char *word)
{
	if (!strcmp(word, "rest"))
		return rest();
	if (!strcmp(word, "fresh"))
		return ask_once(port);
	if (!strcmp(word, "slow"))
		return ask_once(slow_port);
	if (!strcmp(word, "kept"))
		return ask(kept);
	if (!strcmp(word, "good"))
		return look_up("good.example.test");
	if (!strcmp(word, "silent"))
		return look_up("silent.example.test");
	if (!strcmp(word, "hold"))
		return (held = connect_to(port)) < 0 ? strerrorname_np(errno) : "held";
	if (!strcmp(word, "drop"))
		return close(held) ? strerrorname_np(errno) : "dropped";
	if (strcmp(word, "keep"))
		_exit(97);
	kept = connect_to(port);
	return ask(kept);
}

static void play_all(char *words)
{
	char *at = NULL;

	for (char *word = strtok_r(words, ",", &at); word; word = strtok_r(NULL, ",", &at))
		say(word, play(word));
}

struct part {
	const char *word;
	size_t number;
};

/* Does not end: that takes calls of libc's own. */
static void *in_thread(void *argument)
{
	const struct part *part = argument;

	atomic_store(&thread_ids[part->number], (int)syscall(SYS_gettid));
	say(part->word, play(part->word));
	atomic_fetch_add(&ended, 1);
	for (;;)
		pause();
	return NULL;
}

static bool is_asleep(int id)
{
	char path[64], text[512] = "";
	const char *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		_exit(96);
	close(fd);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

/* All are in the middle when it returns. How many. */
static int start_all(char *words)
{
	static struct part parts[THREADS_MAX];
	char *at = NULL;
	size_t count = 0;
	pthread_t thread;

	for (char *word = strtok_r(words, ",", &at); word; word = strtok_r(NULL, ",", &at)) {
		int id;

		parts[count] = (struct part){word, count};
		if (count == THREADS_MAX || pthread_create(&thread, NULL, in_thread, &parts[count]))
			_exit(95);
		while (!(id = atomic_load(&thread_ids[count])) || !is_asleep(id))
			usleep(1000);
		count++;
	}
	return (int)count;
}

static void set_filter(const char *path, bool for_all)
{
	static char code[FILTER_BYTES];
	struct sock_fprog program = {.filter = (struct sock_filter *)code};
	int fd = open(path, O_RDONLY);
	ssize_t size = fd < 0 ? 0 : read(fd, code, sizeof(code));

	if (size <= 0)
		_exit(94);
	close(fd);
	program.len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, for_all ? SECCOMP_FILTER_FLAG_TSYNC : 0,
			    &program))
		_exit(93);
}

int main(int argc, char *argv[])
{
	if (argc != 8)
		return 2;
	port = atoi(argv[3]);
	slow_port = atoi(argv[4]);
	play_all(argv[5]);
	threads = start_all(argv[6]);
	if (argv[1][0])
		set_filter(argv[1], !strcmp(argv[2], "all"));
	say("filter", "set");
	play_all(argv[7]);
	say("all", rest());
	_exit(0);
}
