/* SPDX-License-Identifier: MIT */
#include "shim/pace.h"

#include "core/clock.h"

#define BURST_NS  (CLOCK_SECOND_NS / 5)
#define PIECE_NS  (CLOCK_SECOND_NS / 50)

/* Neither overflows: a rate of 2^44 bytes a second is past what any socket moves. */
#define RATE_MOST (1ull << 44)

static uint64_t clamp(uint64_t bytes_a_second)
{
	if (bytes_a_second == 0)
		return 1;
	return bytes_a_second < RATE_MOST ? bytes_a_second : RATE_MOST;
}

/* What so many bytes take. */
static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
	return bytes / rate * CLOCK_SECOND_NS +
			(uint64_t)((unsigned __int128)(bytes % rate) * CLOCK_SECOND_NS / rate);
}

/* Of a byte at least. */
static uint64_t piece_ns(uint64_t rate)
{
	uint64_t one_ns = time_of(1, rate) + 1;

	return one_ns > PIECE_NS ? one_ns : PIECE_NS;
}

static uint64_t paid_until(struct pace *pace, uint64_t rate, uint64_t now_ns)
{
	uint64_t paid_ns = atomic_load_explicit(&pace->paid_ns, memory_order_relaxed);
	uint64_t burst_ns = piece_ns(rate) > BURST_NS ? piece_ns(rate) : BURST_NS;
	uint64_t first_ns = now_ns > piece_ns(rate) ? now_ns - piece_ns(rate) : 1;

	if (!paid_ns && atomic_compare_exchange_strong_explicit(&pace->paid_ns, &paid_ns, first_ns,
				memory_order_relaxed, memory_order_relaxed))
		return first_ns;
	return paid_ns + burst_ns < now_ns ? now_ns - burst_ns : paid_ns;
}

uint64_t pace_room(struct pace *pace, uint64_t bytes_a_second, uint64_t now_ns,
		uint64_t *ret_due_ns)
{
	uint64_t rate = clamp(bytes_a_second), paid_ns = paid_until(pace, rate, now_ns);

	*ret_due_ns = paid_ns + piece_ns(rate);
	if (now_ns < *ret_due_ns)
		return 0;
	return (uint64_t)((unsigned __int128)(now_ns - paid_ns) * rate / CLOCK_SECOND_NS);
}

void pace_take(struct pace *pace, uint64_t bytes_a_second, uint64_t bytes, uint64_t now_ns)
{
	uint64_t rate = clamp(bytes_a_second), old_ns, new_ns;

	do {
		old_ns = atomic_load_explicit(&pace->paid_ns, memory_order_relaxed);
		new_ns = paid_until(pace, rate, now_ns) + time_of(bytes, rate);
	} while (!atomic_compare_exchange_weak_explicit(&pace->paid_ns, &old_ns, new_ns,
			memory_order_relaxed, memory_order_relaxed));
}
