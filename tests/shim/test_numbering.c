/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <pthread.h>
#include <sched.h>

#include "shim/inject_slot.h"
#include "shim/numbering.h"

TestSuite(numbering, .timeout = 60);

static void begin(const char *rules)
{
	faults_open(SOCK_STREAM);
	faults_start(rules);
	cr_assert(slots_start());
}

/* The slot of a connection that nothing else knows of. */
static struct slot *slot_new(uint32_t index)
{
	struct connection *stale;
	struct connection *connection = fd_table_connect((int)(100 + index), &stale);

	cr_assert_not_null(connection);
	slot_begin(slot_of(connection), connection, 1);
	return slot_of(connection);
}

static uint32_t number_of(struct slot *slot, uint32_t rule)
{
	const struct strike *strike = slot_find(slot, rule);

	return strike ? strike_number(strike) : 0;
}

Test(numbering, each_rule_counts_its_own_connections_from_1)
{
	struct slot *first, *second;

	begin("fault A = 127.0.0.1:PORT refuse\nfault B = 127.0.0.1:PORT reset\n");
	first = slot_new(0);
	second = slot_new(1);
	numbering_add_all(first, (uint32_t[]){ 0, 1 }, 2, clock_now_ns());
	cr_expect_eq(number_of(first, 0), 1);
	cr_expect_eq(number_of(first, 1), 1);
	cr_expect_not_null(numbering_add(second, 1, clock_now_ns()));
	cr_expect_eq(number_of(second, 0), 0, "not under it");
	cr_expect_eq(number_of(second, 1), 2);
	cr_expect_eq(slot_count(second), 1);
}

Test(numbering, a_rule_without_room_is_suppressed)
{
	struct slot *slot;

	begin("fault A = 127.0.0.1:PORT refuse\n");
	slot = slot_new(0);
	while (slot_count(slot) < FAULT_TOGETHER_MAX)
		cr_assert_not_null(numbering_add(slot, 0, clock_now_ns()));
	cr_expect_eq(suppressed(0, FAULT_IMPOSSIBLE), 0);
	cr_expect_null(numbering_add(slot, 0, clock_now_ns()));
	cr_expect_eq(suppressed(0, FAULT_IMPOSSIBLE), 1);
	cr_expect_eq(atomic_load(&record_of(0)->connections), FAULT_TOGETHER_MAX,
			"it takes no number");
}

#define THREADS 2
#define EACH	2000

static _Atomic uint32_t ready;

static void *number_many(void *slot)
{
	uintptr_t differ = 0;

	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < THREADS)
		sched_yield();
	for (int i = 0; i < EACH; i++) {
		atomic_store(&((struct slot *)slot)->count, 0);
		numbering_add_all(slot, (uint32_t[]){ 0, 1 }, 2, clock_now_ns());
		differ += number_of(slot, 0) != number_of(slot, 1);
	}
	return (void *)differ;
}

Test(numbering, rules_of_the_same_connections_count_them_alike_in_all_threads)
{
	pthread_t threads[THREADS];
	void *differ;

	begin("fault A = 127.0.0.1:PORT refuse\nfault B = 127.0.0.1:PORT reset\n");
	for (uint32_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, number_many, slot_new(i)), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &differ);
		cr_expect_eq(differ, NULL);
	}
	cr_expect_eq(atomic_load(&record_of(0)->connections), THREADS * EACH);
}
