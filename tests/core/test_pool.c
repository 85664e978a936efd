/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/pool.h"

TestSuite(pool, .timeout = 10);

#define CORE 3
#define MAX  5

static const struct pool_shape handing_over = {CORE, MAX, 0, 5};
static const struct pool_shape queueing = {CORE, MAX, 4, 100};

/* All threads are busy but `idle`. */
static enum pool_answer admit(
		struct pool_shape shape, uint32_t threads, uint32_t idle, uint32_t queued)
{
	return pool_admit(shape, (struct pool_load){threads, idle, queued});
}

Test(pool, threads_up_to_core_are_started_before_anything_waits)
{
	for (uint32_t threads = 0; threads < CORE; threads++) {
		cr_assert_eq(admit(handing_over, threads, 0, 0), POOL_STARTS);
		cr_assert_eq(admit(queueing, threads, 0, 0), POOL_STARTS);
	}
}

Test(pool, an_idle_thread_is_taken_first)
{
	for (uint32_t threads = 1; threads <= MAX; threads++) {
		cr_assert_eq(admit(handing_over, threads, 1, 0), POOL_HANDS_OVER);
		cr_assert_eq(admit(queueing, threads, 1, 0), POOL_HANDS_OVER);
	}
}

Test(pool, without_a_queue_it_grows_to_max_and_then_rejects)
{
	for (uint32_t threads = CORE; threads < MAX; threads++)
		cr_assert_eq(admit(handing_over, threads, 0, 0), POOL_STARTS);
	cr_assert_eq(admit(handing_over, MAX, 0, 0), POOL_REJECTS);
}

Test(pool, without_a_queue_its_threshold_says_nothing)
{
	struct pool_shape shape = {CORE, MAX, 0, 0};

	cr_assert_eq(admit(shape, 0, 0, 0), POOL_STARTS);
	cr_assert_eq(admit(shape, MAX, 1, 0), POOL_HANDS_OVER);
}

Test(pool, it_grows_beyond_core_only_when_the_queue_is_full)
{
	for (uint32_t queued = 0; queued < 4; queued++)
		cr_assert_eq(admit(queueing, CORE, 0, queued), POOL_QUEUES);
	cr_assert_eq(admit(queueing, CORE, 0, 4), POOL_STARTS);
	cr_assert_eq(admit(queueing, MAX - 1, 0, 4), POOL_STARTS);
	cr_assert_eq(admit(queueing, MAX, 0, 4), POOL_REJECTS);
	cr_assert_eq(admit(queueing, MAX, 0, 3), POOL_QUEUES);
}

Test(pool, the_threshold_is_tested_first_so_that_max_is_never_reached)
{
	struct pool_shape shape = {CORE, MAX, 4, 4};

	cr_assert_eq(admit(shape, CORE, 0, 3), POOL_QUEUES);
	cr_assert_eq(admit(shape, CORE, 0, 4), POOL_REJECTS);
	shape.queue_reject = 2;
	cr_assert_eq(admit(shape, CORE, 0, 1), POOL_QUEUES);
	cr_assert_eq(admit(shape, CORE, 0, 2), POOL_REJECTS);
}

Test(pool, a_threshold_of_zero_rejects_all_that_a_queue_could_take)
{
	struct pool_shape shape = {CORE, MAX, 4, 0};

	cr_assert_eq(admit(shape, 0, 0, 0), POOL_REJECTS);
	cr_assert_eq(admit(shape, CORE, 1, 0), POOL_REJECTS);
}

Test(pool, a_max_below_core_is_core)
{
	struct pool_shape shape = {CORE, 1, 0, 5};

	cr_assert_eq(admit(shape, CORE - 1, 0, 0), POOL_STARTS);
	cr_assert_eq(admit(shape, CORE, 0, 0), POOL_REJECTS);
}

/* Busy threads and waiting work are all that java's executor looks at. */
static bool java_admits(struct pool_shape shape, uint32_t busy, uint32_t queued)
{
	if (shape.queue > 0 && queued >= shape.queue_reject)
		return false;
	return busy < shape.core || queued < shape.queue || busy < shape.max;
}

static void compare(struct pool_shape shape, uint32_t busy, uint32_t idle, uint32_t queued)
{
	/* Work does not wait while a thread is idle, or may still be started. */
	if (queued && (idle || busy < shape.core))
		return;
	cr_assert_eq(admit(shape, busy + idle, idle, queued) != POOL_REJECTS,
			java_admits(shape, busy, queued),
			"%u-%u, %u of %u: %u busy, %u idle, %u wait", shape.core, shape.max,
			shape.queue_reject, shape.queue, busy, idle, queued);
}

static void compare_all(struct pool_shape shape)
{
	for (uint32_t busy = 0; busy <= shape.max; busy++)
		for (uint32_t idle = 0; busy + idle <= shape.max; idle++)
			for (uint32_t queued = 0; queued <= shape.queue; queued++)
				compare(shape, busy, idle, queued);
}

Test(pool, what_is_admitted_is_what_java_admits)
{
	for (uint32_t core = 1; core <= 3; core++)
		for (uint32_t max = core; max <= 4; max++)
			for (uint32_t queue = 0; queue <= 3; queue++)
				for (uint32_t reject = 0; reject <= 4; reject++)
					compare_all((struct pool_shape){core, max, queue, reject});
}
