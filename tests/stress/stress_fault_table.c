/* SPDX-License-Identifier: MIT */
/*
 * Processes, then threads for the thread sanitizer, that claim records of fault rules at once, take
 * numbers from them and strike; then processes that are killed while they claim. One rule has one
 * record, one connection one number, and of all that ask exactly `times` strike.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fault_table.h"

#define WORKERS 4
#define ROUNDS 1500
#define CALLS 60000
#define TIMES 70000
#define EVERY 100
#define KILLS 40
#define RULES 40
#define START 1000000000000ull

struct shared {
	struct fault_table table;
	_Atomic uint32_t arrived;
	_Atomic uint32_t claimed[WORKERS]; /* index of the record */
	_Atomic uint32_t struck, struck_every, numbers[WORKERS * CALLS + 1];
	_Atomic uint64_t now_ns, claims;
};

static struct shared *shared;

static void fail(const char *what, unsigned int number)
{
	fprintf(stderr, "stress_fault_table: %s (%u)\n", what, number);
	_exit(1);
}

/* Until all are here. Not a pthread barrier: that wakes one after the other, and what follows is
 * over before the second one runs. */
static void meet(void)
{
	uint32_t number = atomic_fetch_add(&shared->arrived, 1);
	uint32_t all = (number / WORKERS + 1) * WORKERS;

	for (unsigned int spins = 1; atomic_load(&shared->arrived) < all; spins++)
		if (spins % 256 == 0)
			sched_yield();
}

static struct fault fault_of(unsigned int rule)
{
	struct fault fault = { .hash = 1000003ull * (rule + 1) };

	snprintf(fault.name, sizeof(fault.name), "R%u", rule);
	return fault;
}

static struct fault_record *claim(unsigned int rule, uint64_t now_ns)
{
	struct fault fault = fault_of(rule);

	return fault_table_claim(&shared->table, &fault, "redis refuse", 1, now_ns);
}

static unsigned int records_of(unsigned int rule)
{
	struct fault fault = fault_of(rule);
	struct fault_view view;
	unsigned int count = 0;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++)
		count += fault_table_read(&shared->table, i, START, &view) &&
			strcmp(view.name, fault.name) == 0;
	return count;
}

/* Clocks that differ, so that a record is forgotten for one and not yet for another: each chooses
 * its own to claim. */
static void claim_at_once(unsigned int worker)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t now_ns = START + round * (FAULT_FORGOTTEN_NS / 8) +
			worker * (FAULT_FORGOTTEN_NS / 16);
		struct fault_record *record;

		meet();
		record = claim(round, now_ns);
		if (!record)
			fail("no record", round);
		atomic_store(&shared->claimed[worker], (uint32_t)(record - shared->table.records));
		meet();
		for (int other = 0; other < WORKERS; other++)
			if (shared->claimed[other] != shared->claimed[worker])
				fail("two records were claimed", round);
		if (records_of(round) != 1)
			fail("not one record", round);
	}
}

static void strike_at_once(void)
{
	struct fault_record *record = claim(ROUNDS + 1, 2 * START);
	struct fault_record *other = claim(ROUNDS + 2, 2 * START);
	struct fault fault = { .times = TIMES }, every = { .every_ns = EVERY };

	for (int call = 0; call < CALLS; call++) {
		uint64_t now_ns = atomic_fetch_add(&shared->now_ns, 1);
		uint32_t number = fault_record_connection(record, 2 * START);

		if (number < 1 || number > WORKERS * CALLS ||
				atomic_fetch_add(&shared->numbers[number], 1) != 0)
			fail("a number was given out twice", number);
		atomic_fetch_add(&shared->struck, fault_record_strike(record, &fault, 2 * START));
		atomic_fetch_add(&shared->struck_every,
				fault_record_strike(other, &every, now_ns));
	}
}

static void work(unsigned int worker)
{
	claim_at_once(worker);
	meet();
	strike_at_once();
}

static void *work_as_thread(void *argument)
{
	work((unsigned int)(uintptr_t)argument);
	return NULL;
}

static void shared_reset(void)
{
	memset(shared, 0, sizeof(*shared));
	shared->now_ns = 2 * START;
}

static void expect_exactly(const char *who)
{
	struct fault_record *record = claim(ROUNDS + 1, 2 * START);

	if (shared->struck != TIMES || record->injected != TIMES)
		fail("not `times` strikes", shared->struck);
	if (record->suppressed[FAULT_BY_TIMES] != WORKERS * CALLS - TIMES)
		fail("not the rest was suppressed", TIMES);
	if (record->connections != WORKERS * CALLS)
		fail("connections were lost", (unsigned int)record->connections);
	if (shared->struck_every < 1 || shared->struck_every > WORKERS * CALLS / EVERY)
		fail("not one strike in each stretch", shared->struck_every);
	printf("%s: %u rounds, %u strikes, %u one in each stretch\n", who, ROUNDS, shared->struck,
			shared->struck_every);
}

static void as_processes(void)
{
	pid_t pids[WORKERS];

	shared_reset();
	fflush(stdout);
	for (unsigned int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			work(i);
			_exit(0);
		}
	}
	for (unsigned int left = WORKERS; left > 0; left--) {
		int status;

		wait(&status);
		if (status == 0)
			continue;
		/* The others would wait for it for ever. */
		for (unsigned int i = 0; i < WORKERS; i++)
			kill(pids[i], SIGKILL);
		exit(1);
	}
	expect_exactly("processes");
}

static void as_threads(void)
{
	pthread_t threads[WORKERS];

	shared_reset();
	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&threads[i], NULL, work_as_thread, (void *)i);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	expect_exactly("threads");
}

static pid_t claimer_start(unsigned int seed)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (uint64_t state = seed;;) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		claim((unsigned int)(state >> 33) % RULES,
			atomic_fetch_add(&shared->now_ns, FAULT_FORGOTTEN_NS / 8));
		atomic_fetch_add(&shared->claims, 1);
	}
}

static void claims_wait(uint64_t count)
{
	uint64_t until = atomic_load(&shared->claims) + count;

	while (atomic_load(&shared->claims) < until)
		sched_yield();
}

/* The dead leave claims behind, which neither make twins nor keep anybody out. */
static void with_kills(void)
{
	shared_reset();
	for (unsigned int i = 0; i < KILLS; i++) {
		pid_t claimers[2] = { claimer_start(2 * i), claimer_start(2 * i + 1) };

		claims_wait(i % 50 + 1);
		for (int j = 0; j < 2; j++) {
			kill(claimers[j], SIGKILL);
			waitpid(claimers[j], NULL, 0);
		}
		for (unsigned int rule = 0; rule < RULES; rule++)
			if (records_of(rule) > 1)
				fail("two records", rule);
	}
	for (unsigned int rule = 0; rule < RULES; rule++) {
		uint64_t now_ns = atomic_fetch_add(&shared->now_ns, 2 * FAULT_FORGOTTEN_NS);

		if (!claim(rule, now_ns) || records_of(rule) != 1)
			fail("not one record after the kills", rule);
	}
	printf("kills: %u\n", KILLS);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (shared == MAP_FAILED)
		return 1;
	as_processes();
	with_kills();
	as_threads();
	return 0;
}
