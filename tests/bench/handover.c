/* SPDX-License-Identifier: MIT */
/*
 * handover [kernel]: how long a place of a bulkhead takes from the process that gives it back, its
 * close() beginning, to one that waits for it, its connect() returning: "minimum median" in
 * microseconds. To be run with the library before the stub and a rule of concurrency=1 with a
 * queue. With `kernel` it is what a futex between the two alone takes, without the library.
 */
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

#define ROUNDS 301
/* Its processor has gone idle by then, as it would have in a queue. */
#define REST_US 1000
#define LOOKS	20000 /* for the waiter to sleep: two seconds */

static struct sockaddr_in peer;

/* Between the two processes. */
static struct shared {
	_Atomic uint32_t asks; /* the waiter is about to wait */
	_Atomic uint32_t word;
	_Atomic uint64_t got_ns;
} * shared;

static int held;

static void place_take(void)
{
	held = socket(AF_INET, SOCK_STREAM, 0);
	connect(held, (struct sockaddr *)&peer, sizeof(peer));
}

static void place_give(void)
{
	close(held);
}

static void word_take(void)
{
	while (atomic_load(&shared->word))
		syscall(SYS_futex, &shared->word, FUTEX_WAIT, 1, NULL, NULL, 0);
	atomic_store(&shared->word, 1);
}

static void word_give(void)
{
	atomic_store(&shared->word, 0);
	syscall(SYS_futex, &shared->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

struct way {
	void (*take)(void);
	void (*give)(void);
};

static void fail(const char *why)
{
	fprintf(stderr, "handover: %s\n", why);
	exit(1);
}

/* Ends with its parent. */
static void wait_for_ever(const struct way *way, int told, int done)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(told, &byte, 1) == 1) {
		atomic_store(&shared->asks, 1);
		way->take();
		atomic_store(&shared->got_ns, clock_now_ns());
		way->give();
		if (write(done, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static bool is_asleep(pid_t pid)
{
	char path[32], text[256] = "";
	const char *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file))
		fail("cannot see the waiter");
	fclose(file);
	at = strrchr(text, ')');
	return at && at[2] == 'S';
}

static void await_sleep(pid_t pid)
{
	for (int look = 0; look < LOOKS; look++) {
		usleep(100);
		if (atomic_load(&shared->asks) && is_asleep(pid))
			return;
	}
	fail("expected the other process to wait for a place: is there a rule with a queue?");
}

static double round_us(const struct way *way, pid_t waiter, int told, int done)
{
	uint64_t began_ns, got_ns;
	char byte = 0;

	way->take();
	atomic_store(&shared->asks, 0);
	if (write(told, &byte, 1) != 1)
		fail("the waiter is gone");
	await_sleep(waiter);
	usleep(REST_US);
	began_ns = clock_now_ns();
	way->give();
	if (read(done, &byte, 1) != 1)
		fail("the waiter is gone");
	got_ns = atomic_load(&shared->got_ns);
	if (got_ns < began_ns)
		fail("the place was had before it was given back");
	return (double)(got_ns - began_ns) / 1e3;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
	static const struct way place = {place_take, place_give}, kernel = {word_take, word_give};
	const struct way *way = count > 1 && !strcmp(arguments[1], "kernel") ? &kernel : &place;
	double all[ROUNDS];
	int tell[2], answer[2];
	pid_t waiter;

	peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(9)};
	inet_pton(AF_INET, "127.0.0.1", &peer.sin_addr);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (shared == MAP_FAILED || pipe(tell) || pipe(answer))
		fail("no memory or no pipe");
	waiter = fork();
	if (waiter == 0)
		wait_for_ever(way, tell[0], answer[1]);
	for (int round = 0; round < ROUNDS; round++)
		all[round] = round_us(way, waiter, tell[1], answer[0]);
	kill(waiter, SIGKILL);
	waitpid(waiter, NULL, 0);
	qsort(all, ROUNDS, sizeof(all[0]), compare);
	printf("%.1f %.1f\n", all[0], all[ROUNDS / 2]);
	return 0;
}
