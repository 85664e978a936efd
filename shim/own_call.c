/* SPDX-License-Identifier: MIT */
#include "shim/own_call.h"

#include <sys/syscall.h>
#include <time.h>

#include "core/clock.h"
#include "shim/raw.h"

#define WAIT_NS	       1000000000ull
#define WAIT_STEP_NS   50000 /* and what the kernel adds: as much again, or a hundred times */
#define WAIT_STEPS_MIN 100   /* whoever was stopped, or got no time, has not waited yet */

struct own_calls own_calls;

/* Of `calling`, this thread's: it does not wait for itself. */
static _Thread_local uint8_t calling_here;

/* seq_cst, as in all that orders `calling` against `forbidden`: we are counted and then look
 * whether it is forbidden, who forbids it says so and then looks who is counted. */
bool own_calls_begin(void)
{
	calling_here++;
	atomic_fetch_add_explicit(&own_calls.calling, 1, memory_order_seq_cst);
	if (!atomic_load_explicit(&own_calls.forbidden, memory_order_seq_cst))
		return true;
	own_calls_end();
	return false;
}

void own_calls_end(void)
{
	atomic_fetch_sub_explicit(&own_calls.calling, 1, memory_order_seq_cst);
	calling_here--;
}

bool own_wait_step(struct own_wait *wait)
{
	struct timespec step = { .tv_nsec = WAIT_STEP_NS };
	uint64_t now_ns = clock_now_ns();

	if (!wait->until_ns)
		wait->until_ns = now_ns + WAIT_NS;
	if (now_ns >= wait->until_ns && wait->steps >= WAIT_STEPS_MIN)
		return false;
	wait->steps++;
	raw_syscall(SYS_nanosleep, (long)&step, 0, 0, 0, 0, 0);
	return true;
}

void own_calls_forbid(void)
{
	struct own_wait wait = { 0 };

	/* Under a filter there is nobody to wait for, and no call to wait by. */
	if (atomic_fetch_add_explicit(&own_calls.forbidden, 1, memory_order_seq_cst))
		return;
	while (atomic_load_explicit(&own_calls.calling, memory_order_seq_cst) > calling_here &&
			own_wait_step(&wait))
		;
}

void own_calls_allow(void)
{
	atomic_fetch_sub_explicit(&own_calls.forbidden, 1, memory_order_seq_cst);
}

void own_calls_forked(void)
{
	atomic_store_explicit(&own_calls.calling, calling_here, memory_order_relaxed);
}
