/* SPDX-License-Identifier: MIT */
/* Lookups that end in the moment in which nobody waits for them any more: each counts once, whoever
 * wins, and no answer is lost or given twice. */
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/thread.h"

#define CALLERS	    6
#define CALLS	    15000u
#define PATIENCE_NS 60000u
/* After that fewer calls are enough: threads wait long for a processor here. */
#define SECONDS_OF_CALLS 60

int hook_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result);

static int (*libc_getaddrinfo)(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **result);
static uint64_t last_begins_ns;
static _Atomic uint64_t asked, good, bad, wrong, made;

/* Answers about when its caller's patience ends; each fourth time with a failure. */
static int fake_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **result)
{
	uint64_t number = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
	uint64_t end_ns = clock_now_ns() + number * 7919 % (PATIENCE_NS * 3 / 2);

	(void)node;
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return libc_getaddrinfo(node, service, hints, result);
	while (clock_now_ns() < end_ns)
		;
	return number % 4 ? libc_getaddrinfo("10.1.2.3", service, hints, result) : EAI_AGAIN;
}

static void *call_all(void *unused)
{
	for (unsigned int i = 0; i < CALLS && clock_now_ns() < last_begins_ns; i++) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
		int error = hook_getaddrinfo("db.internal", "80", &hints, &list);

		atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
		if (!error && list && !list->ai_next) {
			atomic_fetch_add_explicit(&good, 1, memory_order_relaxed);
			freeaddrinfo(list);
		} else if (error == EAI_AGAIN) {
			atomic_fetch_add_explicit(&bad, 1, memory_order_relaxed);
		} else {
			atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
		}
	}
	return unused;
}

static void start(void)
{
	char *const environment[] = {
			"SHUNT_BREAK_DB=db.internal volume=1000000 resolve-timeout=1ms "
			"resolve-pool=2 resolve-pool-max=3 resolve-queue=2 resolve-queue-reject=9 "
			"resolve-stale=1h",
			NULL};

	config_load(&runtime.config, environment, NULL);
	runtime.config.rules[0].settings.resolve_timeout_ns = PATIENCE_NS;
	runtime.segment = segment_open_private();
	runtime.pid = (uint32_t)getpid();
	libc_getaddrinfo = getaddrinfo;
	real();
	real_table.getaddrinfo = fake_getaddrinfo;
	atomic_store_explicit(&runtime.is_active, true, memory_order_release);
}

static uint64_t total(enum cell_total which)
{
	struct endpoint endpoint = {.host = "db.internal", .is_lookup = true};
	struct cell *cell = runtime_cell(
			&runtime.config.rules[0], CELL_LOOKUP, &endpoint, clock_now_ns(), NULL);

	return atomic_load_explicit(&cell->totals[which], memory_order_relaxed);
}

int main(void)
{
	pthread_t threads[CALLERS];
	uint64_t ended;

	start();
	last_begins_ns = clock_now_ns() + SECONDS_OF_CALLS * 1000000000ull;
	for (size_t i = 0; i < CALLERS; i++)
		pthread_create(&threads[i], NULL, call_all, NULL);
	for (size_t i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	thread_hold();
	ended = total(CELL_TOTAL_success) + total(CELL_TOTAL_failure) + total(CELL_TOTAL_timeout) +
		total(CELL_TOTAL_rejected);
	printf("%llu calls: %llu good, %llu bad; %llu success, %llu failure, %llu timeout, %llu "
	       "rejected, "
	       "%llu cached\n",
			(unsigned long long)made, (unsigned long long)good, (unsigned long long)bad,
			(unsigned long long)total(CELL_TOTAL_success),
			(unsigned long long)total(CELL_TOTAL_failure),
			(unsigned long long)total(CELL_TOTAL_timeout),
			(unsigned long long)total(CELL_TOTAL_rejected),
			(unsigned long long)total(CELL_TOTAL_cached));
	if (wrong || ended != made || good + bad != made)
		return 1;
	return good == total(CELL_TOTAL_success) + total(CELL_TOTAL_cached) ? 0 : 1;
}
