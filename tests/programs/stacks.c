/* SPDX-License-Identifier: MIT */
/*
 * Little stack. What a call takes of it goes to stderr, a line `NAME BYTES` each, to be compared
 * with the same bare.
 */
#include <limits.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/scene.h"

#define PAINT	      0xa5
#define MEASURED_SIZE (512 * 1024)
#define GUARD_SIZE    (64 * 1024)

static struct sockaddr_in dead;
static struct pair pair;
static char text[8];

/* One step each, as a thread. Results are printed by main, whose stack is large. */
static long result;
static int error;

static void keep(long value)
{
	error = errno;
	result = value;
}

/* The first opens its circuit, and what is to be logged of that is; others are refused. */
static void *is_refused(void *unused)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	keep(connect(fd, as_sockaddr(&dead), sizeof(dead)));
	close(fd);
	return unused;
}

static void *connects(void *unused)
{
	struct sockaddr_in address = address_listening();

	pair.client = socket(AF_INET, SOCK_STREAM, 0);
	keep(connect(pair.client, as_sockaddr(&address), sizeof(address)));
	pair.server = accept(listener(), NULL, NULL);
	return unused;
}

static void *sends(void *unused)
{
	keep(send(pair.client, "ping", 4, MSG_NOSIGNAL));
	return unused;
}

static void *receives(void *unused)
{
	keep(recv(pair.client, text, sizeof(text), 0));
	return unused;
}

static void *closes(void *unused)
{
	keep(close(pair.client));
	return unused;
}

static void *looks_up_number(void *unused)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;

	keep(getaddrinfo("127.0.0.1", "80", &hints, &list));
	return unused;
}

/* Not in /etc/hosts and not a name that a resolver is asked for over the network. */
static void *looks_up_name(void *unused)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;

	keep(getaddrinfo("name.invalid", "80", &hints, &list));
	return unused;
}

static const struct step {
	const char *name;
	void *(*take)(void *);
} steps[] = {
	{ "fails", is_refused },
	{ "refused", is_refused },
	{ "refused", is_refused },
	{ "connects", connects },
	{ "sends", sends },
	{ "receives", receives },
	{ "closes", closes },
	{ "looks_up_number", looks_up_number },
	{ "looks_up_name", looks_up_name },
};

/* Memory with nothing below it that could be written to. */
static unsigned char *guarded(size_t size)
{
	unsigned char *memory = mmap(NULL, GUARD_SIZE + size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory == MAP_FAILED ? -1 : 0, "have memory");
	must(mprotect(memory + GUARD_SIZE, size, PROT_READ | PROT_WRITE), "have memory");
	return memory + GUARD_SIZE;
}

static void on_stack(const struct step *step, unsigned char *stack, size_t size)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	must(-pthread_attr_setstack(&attributes, stack, size), "set a stack");
	must(-pthread_create(&thread, &attributes, step->take, NULL), "start a thread");
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	printf("%s = %ld %s\n", step->name, result,
			result == -1 ? strerrorname_np(error) : "");
	if (step->take == sends)
		server_answers(pair, 4);
}

static size_t bytes_used(const unsigned char *stack, size_t size)
{
	size_t unused = 0;

	while (unused < size && stack[unused] == PAINT)
		unused++;
	return size - unused;
}

static void used(void)
{
	unsigned char *stack = guarded(MEASURED_SIZE);

	dead = address_refusing();
	listener();
	for (size_t i = 0; i < COUNT(steps); i++) {
		memset(stack, PAINT, MEASURED_SIZE);
		on_stack(&steps[i], stack, MEASURED_SIZE);
		fprintf(stderr, "%s %zu\n", steps[i].name, bytes_used(stack, MEASURED_SIZE));
	}
	close(pair.server);
}

/* All that need no more than that bare. */
static void least(void)
{
	size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	unsigned char *stack = guarded(size);

	dead = address_refusing();
	listener();
	for (size_t i = 0; i < COUNT(steps); i++) {
		if (steps[i].take != looks_up_name)
			on_stack(&steps[i], stack, size);
	}
	close(pair.server);
}

/* The first call that is hooked comes from a handler, on a stack that holds little more than what
 * the kernel puts there. */

static volatile int handled;

static void connect_in_handler(int number)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	dead = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(1),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	for (int i = 0; i < 3; i++)
		handled += connect(fd, as_sockaddr(&dead), sizeof(dead)) == -1 &&
				errno == ECONNREFUSED;
	handled += close(fd) == 0;
	(void)number;
}

static void first_call(void)
{
	size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096;
	/* In whole pages; below it there is none. */
	stack_t stack = { .ss_sp = guarded((size + 4095) & ~4095ul), .ss_size = size };
	struct sigaction action = { .sa_handler = connect_in_handler, .sa_flags = SA_ONSTACK };

	must(sigaltstack(&stack, NULL), "set a stack");
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	printf("handled: %d\n", handled);
}

int main(int argc, char *argv[])
{
	static const struct scene scenes[] = {
		SCENE(first_call),
		SCENE(used),
		SCENE(least),
	};

	return scenes_play(scenes, COUNT(scenes), argc, argv);
}
