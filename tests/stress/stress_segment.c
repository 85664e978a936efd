/* SPDX-License-Identifier: MIT */
/*
 * Processes that find, claim and reuse cells, and are killed while they do; then threads that do
 * the same, for the thread sanitizer. No target is ever lost or has two cells.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/segment.h"

#define WORKERS 3
#define KILLS 60
#define MAX_TARGETS 1000
#define SECOND 1000000000ull
#define THREAD_CALLS 20000

struct shared {
	_Atomic uint64_t calls;
	_Atomic uint64_t now_ns;
	_Atomic uint64_t overflow;
	/* Counted after the cell was: at most one call behind it for each kill. */
	_Atomic uint64_t counted[MAX_TARGETS];
};

/* How many targets, and how fast time goes: with more targets than cells it must go fast enough for
 * cells to become idle. */
struct phase {
	const char *name;
	unsigned int targets;
	uint64_t tick_ns;
};

static struct shared *shared;
static struct segment *segment;
static struct cell_key keys[MAX_TARGETS];
static uint64_t hashes[MAX_TARGETS];

static void fail(const char *phase, const char *what, unsigned int target)
{
	fprintf(stderr, "stress_segment: %s: %s (target %u)\n", phase, what, target);
	exit(1);
}

static void keys_make(void)
{
	static const struct window_shape shape = { .span_ns = SECOND, .buckets = 10 };

	for (unsigned int i = 0; i < MAX_TARGETS; i++) {
		char host[32];

		snprintf(host, sizeof(host), "host-%u", i);
		cell_key_make(&keys[i], CELL_CONNECTION, "PAY", host, NULL, 443, &shape);
		hashes[i] = cell_key_hash(&keys[i]);
	}
}

static uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Half of the calls are for what everybody else wants at this moment too. */
static unsigned int target_choose(const struct phase *phase, uint64_t *random)
{
	uint64_t crowd = atomic_load(&shared->calls) / 8;

	return (random_next(random) & 1 ? random_next(&crowd) : random_next(random)) %
		phase->targets;
}

static void call_once(const struct phase *phase, uint64_t *random)
{
	unsigned int target = target_choose(phase, random);
	uint64_t now_ns = atomic_fetch_add(&shared->now_ns, phase->tick_ns);
	struct cell *cell = segment_cell(segment, &keys[target], hashes[target], now_ns);

	atomic_fetch_add(&shared->calls, 1);
	if (!cell) {
		atomic_fetch_add(&shared->overflow, 1);
		return;
	}
	atomic_store(&cell->used_ns, now_ns);
	cell_count(cell, CELL_TOTAL_success);
	atomic_fetch_add(&shared->counted[target], 1);
}

static pid_t worker_start(const struct phase *phase, uint64_t seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		call_once(phase, &seed);
}

static void calls_wait(uint64_t count)
{
	uint64_t until = atomic_load(&shared->calls) + count;

	while (atomic_load(&shared->calls) < until)
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static unsigned int cells_of(unsigned int target)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < SEGMENT_CELLS; i++) {
		struct cell *cell = segment_cell_at(segment, i);

		count += cell && memcmp(&cell->key, &keys[target], sizeof(cell->key)) == 0;
	}
	return count;
}

/* Reuse removes what went wrong, so this is looked at often. Nobody may be running. */
static void expect_no_twins(const struct phase *phase)
{
	for (uint32_t i = 0; i < SEGMENT_CELLS; i++) {
		struct cell *cell = segment_cell_at(segment, i);

		for (uint32_t j = 0; cell && j < i; j++) {
			struct cell *other = segment_cell_at(segment, j);

			if (other && !memcmp(&cell->key, &other->key, sizeof(cell->key)))
				fail(phase->name, "two cells", i);
		}
	}
}

static void workers_signal(const pid_t workers[], int signal)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		kill(workers[i], signal);
		if (signal != SIGCONT)
			waitpid(workers[i], NULL, WUNTRACED);
	}
}

static void workers_kill(const struct phase *phase)
{
	pid_t workers[WORKERS];
	uint64_t random = 1;

	for (unsigned int i = 0; i < WORKERS; i++)
		workers[i] = worker_start(phase, i);
	for (unsigned int i = 0; i < KILLS; i++) {
		pid_t *victim = &workers[random_next(&random) % WORKERS];

		calls_wait(random_next(&random) % 200 + 1);
		kill(*victim, SIGKILL);
		waitpid(*victim, NULL, 0);
		*victim = worker_start(phase, WORKERS + i);
		workers_signal(workers, SIGSTOP);
		expect_no_twins(phase);
		workers_signal(workers, SIGCONT);
	}
	workers_signal(workers, SIGKILL);
}

static void expect_one_cell_each(const struct phase *phase)
{
	uint64_t now_ns = atomic_load(&shared->now_ns);

	expect_no_twins(phase);
	/* Claims of the dead are no obstacle: everybody gets a cell, and still one. */
	for (unsigned int i = 0; i < phase->targets; i++) {
		struct cell *cell;

		now_ns += CELL_IDLE_NS + SECOND;
		cell = segment_cell(segment, &keys[i], hashes[i], now_ns);
		if (!cell || memcmp(&cell->key, &keys[i], sizeof(cell->key)))
			fail(phase->name, "no cell", i);
		if (cells_of(i) != 1)
			fail(phase->name, "not one cell", i);
	}
}

static void expect_nothing_lost(const struct phase *phase)
{
	for (unsigned int i = 0; i < phase->targets; i++) {
		struct cell *cell = segment_cell(segment, &keys[i], hashes[i], shared->now_ns);
		uint64_t counted = atomic_load(&shared->counted[i]), total;

		if (!cell)
			fail(phase->name, "no cell", i);
		total = atomic_load(&cell->totals[CELL_TOTAL_success]);
		if (total < counted || total > counted + KILLS + WORKERS)
			fail(phase->name, "calls were lost", i);
	}
}

static void phase_begin(void)
{
	segment = segment_open_private();
	memset(shared, 0, sizeof(*shared));
	atomic_store(&shared->now_ns, 1000 * SECOND);
}

static void phase_end(const struct phase *phase)
{
	if (phase->targets <= SEGMENT_CELLS)
		expect_nothing_lost(phase);
	expect_one_cell_each(phase);
	printf("%s: %lu calls, %lu without a cell\n", phase->name,
			(unsigned long)atomic_load(&shared->calls),
			(unsigned long)atomic_load(&shared->overflow));
	segment_close(segment);
}

struct thread_work {
	const struct phase *phase;
	uint64_t random;
};

/* One number in all fields, so that a mixture shows. */
static void event_once(const struct phase *phase, uint32_t number, uint64_t *after)
{
	struct event event = { .time_ns = number, .kind = EVENT_TRIPPED, .pid = number,
		.requests = number, .errors = number, .detail = number };

	event_write(&segment->events, &event);
	if (!event_read(&segment->events, *after, &event))
		return;
	if (event.sequence <= *after || event.time_ns != event.pid || event.requests != event.pid ||
			event.errors != event.pid || event.detail != event.pid)
		fail(phase->name, "a torn event", event.pid);
	*after = event.sequence;
}

static void *thread_run(void *argument)
{
	struct thread_work *work = argument;
	uint64_t after = 0;

	for (uint32_t i = 0; i < THREAD_CALLS; i++) {
		call_once(work->phase, &work->random);
		event_once(work->phase, i, &after);
	}
	return NULL;
}

static void threads_run(const struct phase *phase)
{
	struct thread_work work[WORKERS];
	pthread_t threads[WORKERS];

	for (unsigned int i = 0; i < WORKERS; i++) {
		work[i] = (struct thread_work){ phase, i };
		if (pthread_create(&threads[i], NULL, thread_run, &work[i]))
			fail(phase->name, "no thread", i);
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	static const struct phase phases[] = {
		{ "room for all", 300, 1000 },
		{ "every call reuses a cell", MAX_TARGETS, CELL_IDLE_NS / 100 },
		{ "cells become idle now and then", 500, CELL_IDLE_NS / 1000 },
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (shared == MAP_FAILED)
		return 1;
	keys_make();
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		phase_begin();
		workers_kill(&phases[i]);
		phase_end(&phases[i]);
		phase_begin();
		threads_run(&phases[i]);
		phase_end(&phases[i]);
	}
	return 0;
}
