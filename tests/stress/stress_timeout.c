/* SPDX-License-Identifier: MIT */
/*
 * Answers that come in the very moment in which the timer thread ends their calls. Each server
 * moves its answer a little after each call, later after an answer that came and sooner after one
 * that came too late, so that nearly all calls are such. Every call ends once; who is told
 * ETIMEDOUT was counted so, and nobody else; no send raises SIGPIPE; and threads that open and
 * close descriptors all the time, mostly those that a call has just given up, never find one of
 * theirs shut.
 *
 * On a machine that is busy elsewhere everything takes longer, and there are fewer calls: one that
 * must time out and one that must not are always among them.
 *
 * STRESS_CALLS is the number of calls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/call.h"
#include "shim/deadline.h"
#include "shim/gate.h"
#include "shim/gate_lifetime.h"
#include "shim/runtime.h"
#include "shim/timer.h"

#define PAIRS		4
#define OPENERS		2
#define CALLS		4000
#define TIMEOUT_NS	2000000ll
#define STEP_NS		40000
#define CLOSE_NS	50000
/* No call begins after that, and all that have begun have ended long before the second. */
#define SECONDS_OF_CALLS 60
#define SECONDS_AT_MOST	 280

__typeof__(socket) hook_socket;
__typeof__(connect) hook_connect;
__typeof__(send) hook_send;
__typeof__(recv) hook_recv;

/* When a call's answer is sent. */
enum answer {
	ANSWER_NEVER,	/* only once the client has given up */
	ANSWER_BEFORE,	/* before the client asks */
	ANSWER_IN_DOUBT /* about when the time is over */
};

/* A client and its server. */
struct pair {
	unsigned int calls; /* that have ended */
	bool keeps_alive; /* one connection for many calls, as long as it lives */
	bool pushes;	  /* another thread of the client's sits in a send meanwhile */
	struct sockaddr_in peer;
	int listener, fd;
	_Atomic enum answer answer; /* to the present call */
	_Atomic long long delay_ns;
	_Atomic uint64_t answered_ns;
	sem_t begins, pushed, given_up;
	/* What the client was told, and what the library knew. */
	unsigned long answers, timeouts, passed, pushed_whole, close_calls, unconnected, other;
};

static struct pair pairs[PAIRS];
static unsigned int calls_at_most; /* of a pair */
static uint64_t last_begins_ns;
static _Atomic bool is_over;
static _Atomic unsigned long shut, opened, failures;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(2);
}

static void pause_for(long long ns)
{
	struct timespec duration = {.tv_nsec = (long)ns};

	if (ns > 0)
		nanosleep(&duration, NULL);
}

/* As the hook does; but a sanitizer must see the descriptor close, or it takes the next one for the
 * same. */
static void forget_and_close(int fd)
{
	gate_close(fd);
	close(fd);
}

static int listen_at(struct sockaddr_in *ret)
{
	socklen_t size = sizeof(*ret);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*ret = (struct sockaddr_in){.sin_family = AF_INET};
	ret->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)ret, sizeof(*ret)) || listen(fd, 64) ||
			getsockname(fd, (struct sockaddr *)ret, &size))
		fail("listen");
	return fd;
}

static void answer(struct pair *pair, int fd)
{
	atomic_store(&pair->answered_ns, clock_now_ns());
	send(fd, "a", 1, MSG_NOSIGNAL);
}

static void answer_request(struct pair *pair, int fd)
{
	switch (atomic_load(&pair->answer)) {
	case ANSWER_BEFORE:
		return;
	case ANSWER_NEVER:
		sem_wait(&pair->given_up);
		break;
	case ANSWER_IN_DOUBT:
		pause_for(atomic_load(&pair->delay_ns));
	}
	answer(pair, fd);
}

/* Answers each request, as long as there are any. What is pushed is taken after the answer. */
static void serve(struct pair *pair, int fd)
{
	char taken[16384];

	if (atomic_load(&pair->answer) == ANSWER_BEFORE)
		answer(pair, fd);
	while (recv(fd, taken, 1, 0) == 1) {
		answer_request(pair, fd);
		while (pair->pushes && recv(fd, taken, sizeof(taken), 0) > 0)
			;
	}
	close(fd);
}

static void *serves(void *argument)
{
	struct pair *pair = argument;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!is_over) {
		struct pollfd entry = {.fd = pair->listener, .events = POLLIN};

		if (poll(&entry, 1, 20) == 1)
			serve(pair, accept(pair->listener, NULL, NULL));
	}
	return NULL;
}

/* More than the kernel takes. It ends when the server takes it, timed out or not. */
static void *pushes(void *argument)
{
	static char pushed[262144];
	struct pair *pair = argument;
	ssize_t size;

	for (;;) {
		sem_wait(&pair->begins);
		if (is_over)
			return NULL;
		size = hook_send(pair->fd, pushed, sizeof(pushed), 0);
		/* Unless the time was over before it began, it is never cut short. */
		if (size == sizeof(pushed))
			pair->pushed_whole++;
		else
			pair->other += size >= 0 || errno != ETIMEDOUT;
		sem_post(&pair->pushed);
	}
}

/* As the library sees it, before it is closed. A call that is still open then (nobody answers what
 * was pushed after an answer) ends first: none may time out between the look and the close. */
static void look(struct pair *pair)
{
	struct connection *connection = gate_find(pair->fd);

	gate_shut(pair->fd, SHUT_RDWR);
	if (!connection)
		pair->other++;
	else
		pair->passed += deadline_has_passed(connection);
}

static bool connect_once(struct pair *pair)
{
	int bytes = 16384;

	pair->fd = hook_socket(AF_INET, SOCK_STREAM, 0);
	if (pair->fd < 0)
		fail("socket");
	if (pair->pushes)
		setsockopt(pair->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (!hook_connect(pair->fd, (struct sockaddr *)&pair->peer, sizeof(pair->peer)))
		return true;
	if (errno != ETIMEDOUT)
		fail("connect");
	return false;
}

/* On a machine that is busy elsewhere an attempt may take longer than the calls may: then that was
 * a call, too, and stays ended. */
static void connect_to(struct pair *pair)
{
	while (!connect_once(pair)) {
		pair->unconnected++;
		look(pair);
		forget_and_close(pair->fd);
	}
}

/* Waits for the answer; false: the connection is dead. */
static bool wait_for_answer(struct pair *pair)
{
	char byte;
	ssize_t size = hook_recv(pair->fd, &byte, 1, 0);

	if (size == 1)
		pair->answers++;
	else if (size < 0 && errno == ETIMEDOUT)
		pair->timeouts++;
	else
		pair->other++;
	return size == 1;
}

static void aim(struct pair *pair, bool was_answered)
{
	/* Of an answer that came in time nobody knows how late it would have been too late. */
	if (!was_answered && clock_now_ns() - atomic_load(&pair->answered_ns) < CLOSE_NS)
		pair->close_calls++;
	atomic_fetch_add(&pair->delay_ns, was_answered ? STEP_NS : -STEP_NS);
	if (atomic_load(&pair->delay_ns) > 4 * TIMEOUT_NS)
		atomic_store(&pair->delay_ns, TIMEOUT_NS);
}

static void wait_until_readable(int fd)
{
	struct pollfd entry = {.fd = fd, .events = POLLIN};

	poll(&entry, 1, -1);
}

/* False: the connection is of no more use. */
static bool call(struct pair *pair)
{
	enum answer answer = atomic_load(&pair->answer);
	bool is_alive;

	if (answer == ANSWER_BEFORE)
		wait_until_readable(pair->fd);
	if (hook_send(pair->fd, "r", 1, 0) != 1) {
		/* The deadline of the last call passed with its answer in the air. */
		pair->other += errno != ETIMEDOUT;
		return false;
	}
	if (pair->pushes)
		sem_post(&pair->begins);
	is_alive = wait_for_answer(pair);
	if (answer == ANSWER_NEVER)
		sem_post(&pair->given_up);
	if (pair->pushes)
		sem_wait(&pair->pushed);
	if (answer == ANSWER_IN_DOUBT)
		aim(pair, is_alive);
	pair->calls++;
	/* The server may still have to see what that one's answer was. */
	return is_alive && answer == ANSWER_IN_DOUBT && pair->keeps_alive;
}

static bool goes_on(const struct pair *pair)
{
	/* The sure ones. */
	if (pair->calls <= ANSWER_BEFORE)
		return true;
	return pair->calls < calls_at_most && clock_now_ns() < last_begins_ns;
}

static void *calls(void *argument)
{
	struct pair *pair = argument;
	bool is_alive = false;

	prctl(PR_SET_TIMERSLACK, 1);
	while (goes_on(pair)) {
		atomic_store(&pair->answer,
				pair->calls < ANSWER_IN_DOUBT ? pair->calls : ANSWER_IN_DOUBT);
		if (!is_alive)
			connect_to(pair);
		is_alive = call(pair);
		if (is_alive && goes_on(pair))
			continue;
		look(pair);
		forget_and_close(pair->fd);
		is_alive = false;
	}
	return NULL;
}

/* Is a byte that goes in at one end still there at the other? */
static void check(int in, int out)
{
	struct pollfd entry = {.fd = out, .events = POLLIN | POLLRDHUP};
	char byte;

	if (send(in, "x", 1, MSG_NOSIGNAL) != 1 || poll(&entry, 1, -1) != 1 ||
			entry.revents != POLLIN || recv(out, &byte, 1, 0) != 1)
		atomic_fetch_add(&shut, 1);
}

static void *opens(void *unused)
{
	int ends[2];

	while (!is_over) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
			fail("socketpair");
		check(ends[0], ends[1]);
		sched_yield();
		check(ends[1], ends[0]);
		forget_and_close(ends[0]);
		forget_and_close(ends[1]);
		atomic_fetch_add(&opened, 1);
	}
	return unused;
}

static unsigned long total(const struct pair *pair, enum cell_total which)
{
	struct address address;
	struct endpoint endpoint = {.address = &address, .port = ntohs(pair->peer.sin_port)};

	address_parse("127.0.0.1", &address);
	return atomic_load(&runtime_cell(
			&runtime.config.rules[0], CELL_CONNECTION, &endpoint, clock_now_ns(), NULL)
					    ->totals[which]);
}

/* But for `unused`: where a client had to wait for a second between connect and send, its
 * connection was idle for that long, and the call is a second one. */
static unsigned long total_of_all(const struct pair *pair)
{
	return total(pair, CELL_TOTAL_success) + total(pair, CELL_TOTAL_timeout) +
	       total(pair, CELL_TOTAL_failure) + total(pair, CELL_TOTAL_cancelled) +
	       total(pair, CELL_TOTAL_ignored);
}

static void expect(bool is_so, int index, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "pair %d: %s\n", index, what);
	atomic_fetch_add(&failures, 1);
}

static void judge(int index)
{
	const struct pair *pair = &pairs[index];
	unsigned long timeouts = total(pair, CELL_TOTAL_timeout);

	printf("pair %d: %u calls, %lu answers, %lu timeouts of %lu counted, "
	       "%lu of them answered 50 us before, %lu pushed, %lu never connected\n",
			index, pair->calls, pair->answers, pair->timeouts, timeouts,
			pair->close_calls, pair->pushed_whole, pair->unconnected);
	expect(pair->other == 0, index, "something else than an answer or a timeout");
	expect(pair->answers + pair->timeouts == pair->calls, index, "a call that never ended");
	expect(pair->passed == timeouts, index, "counted more or less often than connections died");
	expect(pair->timeouts <= timeouts, index, "told of more timeouts than were counted");
	expect(pair->timeouts > 0 && pair->answers > 0, index, "it never was in doubt");
	/* What is pushed after the answer is a call of its own. */
	if (!pair->pushes)
		expect(total_of_all(pair) == pair->calls + pair->unconnected, index,
				"outcomes do not add up to calls");
}

/* What it counts, it counts after the connection is dead. */
static void wait_for_timer(void)
{
	while (timer_is_running())
		pause_for(1000000);
}

static void start(void)
{
	const char rules[] = "break PAY = 127.0.0.1 volume=1000000 timeout=2ms\n";

	config_load_text(&runtime.config, "stress", rules, strlen(rules));
	runtime.config.timer = TIMER_AUTO;
	runtime.segment = segment_open_private();
	if (!runtime.segment || runtime.config.rule_count != 1 || !fd_table_start())
		fail("start");
	atomic_store(&runtime.is_active, true);
	for (int i = 0; i < PAIRS; i++) {
		struct pair *pair = &pairs[i];

		pair->keeps_alive = i == 1;
		pair->pushes = i == 2;
		pair->listener = listen_at(&pair->peer);
		atomic_store(&pair->delay_ns, TIMEOUT_NS);
		sem_init(&pair->begins, 0, 0);
		sem_init(&pair->pushed, 0, 0);
		sem_init(&pair->given_up, 0, 0);
	}
}

int main(void)
{
	const char *wanted = getenv("STRESS_CALLS");
	unsigned int count = wanted ? (unsigned int)strtoul(wanted, NULL, 10) : CALLS;
	pthread_t clients[PAIRS], servers[PAIRS], openers[OPENERS], pushing;

	alarm(wanted ? 3600 : SECONDS_AT_MOST);
	calls_at_most = count / PAIRS;
	last_begins_ns = clock_now_ns() + (wanted ? 3000 : SECONDS_OF_CALLS) * 1000000000ull;
	start();
	for (int i = 0; i < OPENERS; i++)
		pthread_create(&openers[i], NULL, opens, NULL);
	for (int i = 0; i < PAIRS; i++)
		pthread_create(&servers[i], NULL, serves, &pairs[i]);
	pthread_create(&pushing, NULL, pushes, &pairs[2]);
	for (int i = 0; i < PAIRS; i++)
		pthread_create(&clients[i], NULL, calls, &pairs[i]);
	for (int i = 0; i < PAIRS; i++)
		pthread_join(clients[i], NULL);
	is_over = true;
	sem_post(&pairs[2].begins);
	pthread_join(pushing, NULL);
	for (int i = 0; i < PAIRS; i++)
		pthread_join(servers[i], NULL);
	for (int i = 0; i < OPENERS; i++)
		pthread_join(openers[i], NULL);
	wait_for_timer();
	for (int i = 0; i < PAIRS; i++)
		judge(i);
	printf("%lu descriptors beside, %lu of them shut\n", opened, shut);
	return failures || shut ? 1 : 0;
}
