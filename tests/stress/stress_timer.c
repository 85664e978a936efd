/* SPDX-License-Identifier: MIT */
/*
 * Threads that open a circuit again and again, whose timer thread comes and goes every millisecond,
 * and threads that hold it: while one does there is none.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/breaker.h"
#include "core/control.h"
#include "core/clock.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "shim/timer.h"

#define OPENERS 2
#define HOLDERS 2
#define ROUNDS	400
#define SECONDS_AT_MOST 240

static pthread_barrier_t start;
static _Atomic bool is_over;
static _Atomic unsigned long wrong, woken;

/* By name: a sanitizer's own threads come and go as well. */
static bool has_timer(void)
{
	DIR *directory = opendir("/proc/self/task");
	char path[300], name[32];
	struct dirent *entry;
	bool has = false;

	while (directory && (entry = readdir(directory))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		has |= fgets(name, sizeof(name), file) && !strcmp(name, "shunt-timer\n");
		fclose(file);
	}
	if (directory)
		closedir(directory);
	return has;
}

static struct breaker breaker_of_rule(const struct rule *rule)
{
	struct endpoint endpoint = { .host = rule->target.host, .is_lookup = true };

	return runtime_breaker(rule, runtime_cell(rule, CELL_LOOKUP, &endpoint, clock_now_ns(),
			NULL));
}

static bool is_half_open(const struct breaker *breaker)
{
	return circuit_read(&breaker->cell->circuit).state == CIRCUIT_HALF_OPEN;
}

static void *opens(void *unused)
{
	const struct rule *rule = &runtime.config.rules[0];
	struct breaker breaker = breaker_of_rule(rule);

	pthread_barrier_wait(&start);
	while (!is_over) {
		if (is_half_open(&breaker)) {
			atomic_fetch_add(&woken, 1);
			control_trip(&breaker, clock_now_ns());
		}
		timer_watch_open(rule, &breaker, clock_now_ns());
	}
	return unused;
}

static void wait_a_little(void)
{
	struct timespec duration = { .tv_nsec = 300000 };

	nanosleep(&duration, NULL);
}

static void *holds(void *unused)
{
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		errno = EDOM;
		thread_hold();
		wrong += errno != EDOM;
		wrong += has_timer();
		wait_a_little();
		wrong += has_timer();
		thread_release();
		/* Now and then long enough for it to do its work. */
		for (int j = 0; j < i % 8; j++)
			wait_a_little();
	}
	return unused;
}

int main(void)
{
	char *const environment[] = { "SHUNT_BREAK_SOON=soon.internal sleep=1ms", "SHUNT_TIMER=on",
		NULL };
	pthread_t openers[OPENERS], holders[HOLDERS];
	struct breaker breaker;

	alarm(SECONDS_AT_MOST);
	config_load(&runtime.config, environment, NULL);
	runtime.segment = segment_open_private();
	if (!runtime.segment || runtime.config.rule_count != 1)
		return 2;
	atomic_store(&runtime.is_active, true);
	breaker = breaker_of_rule(&runtime.config.rules[0]);
	control_trip(&breaker, clock_now_ns());
	pthread_barrier_init(&start, NULL, OPENERS + HOLDERS + 1);
	for (int i = 0; i < OPENERS; i++)
		if (pthread_create(&openers[i], NULL, opens, NULL))
			return 2;
	for (int i = 0; i < HOLDERS; i++)
		if (pthread_create(&holders[i], NULL, holds, NULL))
			return 2;
	pthread_barrier_wait(&start);
	for (int i = 0; i < HOLDERS; i++)
		pthread_join(holders[i], NULL);
	/* Where threads wait long for a processor, nobody may have left it the time before. */
	while (!woken)
		wait_a_little();
	is_over = true;
	for (int i = 0; i < OPENERS; i++)
		pthread_join(openers[i], NULL);
	printf("woken %lu times, wrong %lu times\n", woken, wrong);
	return wrong || !woken;
}
