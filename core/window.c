/* SPDX-License-Identifier: MIT */
#include "core/window.h"

#define EPOCH_MASK ((1u << WINDOW_EPOCH_BITS) - 1)
#define MAX_SKEW_NS UINT64_C(60000000000)

/* A word of a time window: epoch 14 | tick 8 | errors 21 | total 21. */
#define TICK_BITS 8
#define TICK_MASK ((1u << TICK_BITS) - 1)
#define COUNT_BITS 21
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define TAG_SHIFT (2 * COUNT_BITS)
#define BUCKET_ERRORS (COUNT_MASK << COUNT_BITS)

/* `last` of a time window: tick 58 | bucket 6. The bucket saves every event a division. */
#define BUCKET_BITS 6
#define BUCKET_MASK ((1u << BUCKET_BITS) - 1)
#define LAST_TICK_MASK (UINT64_MAX >> BUCKET_BITS)

/* A word of a count window: epoch 14 | block 18 | errors 16 | valid 16; a block is 16 calls. */
#define BLOCK_CALLS 16
#define BLOCK_BITS 18
#define BLOCK_MASK ((1u << BLOCK_BITS) - 1)
#define CALL_ERRORS (UINT64_C(0xffff) << BLOCK_CALLS)

static_assert(WINDOW_WORDS == BUCKET_MASK + 1, "a masked bucket is a legal index");
static_assert(WINDOW_EPOCH_BITS + TICK_BITS + TAG_SHIFT == 64, "a time word is full");
static_assert(WINDOW_EPOCH_BITS + BLOCK_BITS == 32, "a count word is full");

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
	if (value < low)
		return low;
	return value > high ? high : value;
}

static uint32_t bucket_count(const struct window_shape *shape)
{
	return clamp(shape->buckets, 1, WINDOW_MAX_BUCKETS);
}

static uint64_t span_ns(const struct window_shape *shape)
{
	return shape->span_ns == 0 ? 1 : shape->span_ns;
}

/* Serial order of epochs: has `epoch` begun after `than`? */
static bool epoch_is_newer(uint32_t epoch, uint32_t than)
{
	uint32_t ahead = (epoch - than) & EPOCH_MASK;

	return ahead != 0 && ahead <= EPOCH_MASK / 2;
}

/* Acquire: who sees a tick must also see the buckets that were cleared before it was published. */
static uint64_t load_last(const struct window *window)
{
	return atomic_load_explicit(&window->last, memory_order_acquire);
}

/* Acquire keeps the check of `last` that follows from moving before this load. */
static uint64_t load_word(const struct window *window, uint32_t index)
{
	return atomic_load_explicit(&window->words[index & BUCKET_MASK], memory_order_acquire);
}

/* Sequentially consistent, as the loads below: of two callers that each count an error and then
 * look whether the window trips, one sees both errors. (Release alone would let both miss the
 * other's.) */
static bool replace_word(struct window *window, uint32_t index, uint64_t *seen, uint64_t after)
{
	return atomic_compare_exchange_weak_explicit(&window->words[index & BUCKET_MASK], seen,
			after, memory_order_seq_cst, memory_order_acquire);
}

static uint64_t load_to_judge(const struct window *window, uint32_t index)
{
	return atomic_load_explicit(&window->words[index & BUCKET_MASK], memory_order_seq_cst);
}

static uint64_t make_tag(uint32_t epoch, uint64_t tick)
{
	return (uint64_t)(epoch & EPOCH_MASK) << TICK_BITS | (tick & TICK_MASK);
}

static uint64_t last_of(uint64_t tick, uint32_t buckets)
{
	return tick << BUCKET_BITS | tick % buckets;
}

/* floor(now * buckets / span) without overflow: buckets tile the span exactly, in rationals. */
static uint64_t tick_at(const struct window_shape *shape, uint64_t now_ns)
{
	uint64_t span = span_ns(shape), buckets = bucket_count(shape);

	return (now_ns / span * buckets + now_ns % span * buckets / span) & LAST_TICK_MASK;
}

/* Does now lie in the tick of `last`? The products may wrap, their difference does not. */
static bool is_same_tick(const struct window_shape *shape, uint64_t last, uint64_t now_ns)
{
	uint64_t span = span_ns(shape);

	return now_ns * bucket_count(shape) - (last >> BUCKET_BITS) * span < span;
}

/* Is a tick of eight bits one of the `buckets` that end with `tick`? */
static bool tick_is_inside(uint64_t word_tick, uint64_t tick, uint32_t buckets)
{
	return ((tick - word_tick) & TICK_MASK) < buckets;
}

/* Does the last event lie a window and a minute ahead? Then it is `last` which is wrong: a file
 * that survived a reboot. */
static bool is_from_before_reboot(const struct window_shape *shape, uint64_t last, uint64_t now_ns)
{
	uint64_t tick = last >> BUCKET_BITS, buckets = bucket_count(shape);

	return tick - tick_at(shape, now_ns) >= buckets &&
	       (unsigned __int128)tick * span_ns(shape) >
			       ((unsigned __int128)now_ns + MAX_SKEW_NS) * buckets;
}

/* Empties one bucket for the tick of `tag`. False if `last` moved: then others may count there. The
 * word is compared with what it was before `last` was checked, so a caller that slept in between
 * cannot empty what they counted. */
static bool clear_bucket(struct window *window, uint32_t index, uint64_t tag, uint64_t last)
{
	uint64_t seen = load_word(window, index);

	do {
		if (load_last(window) != last)
			return false;
		if (seen == tag << TAG_SHIFT)
			return true;
	} while (!replace_word(window, index, &seen, tag << TAG_SHIFT));
	return true;
}

/* Moves `last` to a tick that it is not at. Every bucket that it passes is emptied before the new
 * tick is published (nobody counts in it before), so no tag is ever older than two windows when it
 * is looked at, and eight bits cannot alias. */
static void advance(struct window *window, const struct window_shape *shape, uint32_t epoch,
		uint64_t last, uint64_t tick)
{
	uint32_t buckets = bucket_count(shape);
	uint32_t index = (uint32_t)(tick % buckets);
	uint64_t passed = tick - (last >> BUCKET_BITS);

	/* Also when it moves back: the difference is huge then. */
	if (passed > buckets)
		passed = buckets;
	for (uint64_t i = 0; i < passed; i++) {
		if (!clear_bucket(window, index, make_tag(epoch, tick - i), last))
			return;
		index = index == 0 ? buckets - 1 : index - 1;
	}
	/* Release: the emptied buckets come first. */
	atomic_compare_exchange_strong_explicit(&window->last, &last, last_of(tick, buckets),
		memory_order_acq_rel, memory_order_relaxed);
}

/* Not in the last tick: finds the tick to count in, and moves `last` there if it is newer. False if
 * the event is too old. */
static bool find_tick(struct window *window, const struct window_shape *shape, uint32_t epoch,
		uint64_t now_ns, uint64_t *ret_last, uint64_t *ret_tick)
{
	uint64_t tick = tick_at(shape, now_ns);

	for (;;) {
		uint64_t last = load_last(window);
		uint64_t behind = (last >> BUCKET_BITS) - tick;
		bool is_ahead = tick > last >> BUCKET_BITS;

		if (last_of(tick, bucket_count(shape)) == last ||
				(!is_ahead && behind != 0 && behind < bucket_count(shape))) {
			*ret_last = last;
			*ret_tick = tick;
			return true;
		}
		if (!is_ahead && behind != 0 && !is_from_before_reboot(shape, last, now_ns))
			return false;
		advance(window, shape, epoch, last, tick);
	}
}

static uint64_t word_after(uint64_t seen, uint64_t tag, bool error)
{
	uint64_t one = UINT64_C(1) | (uint64_t)error << COUNT_BITS;

	if (seen >> TAG_SHIFT != tag)
		return tag << TAG_SHIFT | one;
	return (seen & COUNT_MASK) == COUNT_MASK ? seen : seen + one;
}

/* False if `last` moved meanwhile. A word of the same tick and a newer epoch is left alone. */
static inline bool count_in(struct window *window, uint32_t index, uint32_t epoch, uint64_t last,
		uint64_t tick, bool error)
{
	uint64_t tag = make_tag(epoch, tick);
	uint64_t seen = load_word(window, index);
	uint64_t after;

	do {
		uint64_t seen_tag = seen >> TAG_SHIFT;

		if (load_last(window) != last)
			return false;
		if (seen_tag != tag && ((seen_tag ^ tag) & TICK_MASK) == 0 &&
				epoch_is_newer((uint32_t)(seen_tag >> TICK_BITS), epoch))
			return true;
		after = word_after(seen, tag, error);
	} while (after != seen && !replace_word(window, index, &seen, after));
	return true;
}

/* Out of line, so that the usual record needs no frame: what a frame stores must be in memory
 * before a locked step can be taken. */
__attribute__((noinline)) static void record_elsewhere(struct window *window,
		const struct window_shape *shape, uint32_t epoch, uint64_t now_ns, bool error)
{
	uint64_t last, tick;

	while (find_tick(window, shape, epoch, now_ns, &last, &tick)) {
		uint32_t index = (uint32_t)(tick % bucket_count(shape));

		if (count_in(window, index, epoch, last, tick, error))
			return;
	}
}

static inline bool record_in_last_tick(struct window *window, const struct window_shape *shape,
		uint32_t epoch, uint64_t now_ns, bool error)
{
	uint64_t last = load_last(window);

	return is_same_tick(shape, last, now_ns) &&
		count_in(window, last & BUCKET_MASK, epoch, last, last >> BUCKET_BITS, error);
}

static struct window_sum sum_of_ticks(const struct window *window, uint32_t buckets, uint32_t epoch,
		uint64_t tick)
{
	uint64_t want = make_tag(epoch, tick);
	struct window_sum sum = { 0 };

	for (uint32_t i = 0; i < buckets; i++) {
		uint64_t word = load_to_judge(window, i);
		uint64_t tag = word >> TAG_SHIFT;
		uint64_t take = (tag ^ want) >> TICK_BITS == 0 &&
				tick_is_inside(tag, want, buckets);

		sum.total += word & COUNT_MASK & -take;
		sum.errors += word >> COUNT_BITS & COUNT_MASK & -take;
	}
	if (sum.errors > sum.total)
		sum.errors = sum.total;
	return sum;
}

static struct window_sum sum_in_time(const struct window *window, const struct window_shape *shape,
		uint32_t epoch, uint64_t now_ns)
{
	uint64_t last = load_last(window);
	uint64_t last_tick = last >> BUCKET_BITS;
	uint32_t buckets = bucket_count(shape);
	uint64_t tick;

	if (is_same_tick(shape, last, now_ns))
		return sum_of_ticks(window, buckets, epoch, last_tick);
	tick = tick_at(shape, now_ns);
	if (tick < last_tick) {
		if (is_from_before_reboot(shape, last, now_ns))
			return (struct window_sum){ 0 };
		tick = last_tick;
	}
	/* A whole window without an event. Beyond it tags could alias. */
	if (tick - last_tick >= buckets)
		return (struct window_sum){ 0 };
	return sum_of_ticks(window, buckets, epoch, tick);
}

static uint64_t make_block_tag(uint32_t epoch, uint64_t block)
{
	return (uint64_t)(epoch & EPOCH_MASK) << BLOCK_BITS | (block & BLOCK_MASK);
}

/* Was the word written for a later block, or for this one in a newer epoch? */
static bool word_is_newer(uint64_t word, uint32_t epoch, uint64_t block)
{
	uint32_t ahead = (uint32_t)((word >> 32) - block) & BLOCK_MASK;

	if (ahead == 0)
		return epoch_is_newer((uint32_t)(word >> (32 + BLOCK_BITS)), epoch);
	/* Further ahead is no sleeper's doing but garbage, which must not shut the word off. */
	return ahead <= 4 * WINDOW_WORDS;
}

__attribute__((noinline)) static void record_in_calls(
		struct window *window, uint32_t epoch, bool error)
{
	uint64_t position = atomic_fetch_add_explicit(&window->last, 1, memory_order_relaxed);
	uint64_t block = position / BLOCK_CALLS;
	uint64_t valid = UINT64_C(1) << position % BLOCK_CALLS;
	uint64_t bits = valid | (error ? valid << BLOCK_CALLS : 0);
	uint64_t tag = make_block_tag(epoch, block);
	uint32_t index = block % WINDOW_WORDS;
	uint64_t seen = load_word(window, index);
	uint64_t after;

	do {
		if (seen >> 32 != tag && word_is_newer(seen, epoch, block))
			return;
		after = seen >> 32 == tag ? seen | bits : tag << 32 | bits;
	} while (!replace_word(window, index, &seen, after));
}

/* The calls of a block that lie in positions from..to-1, as a mask. */
static uint32_t block_mask(uint64_t block, uint64_t from, uint64_t to)
{
	uint64_t start = block * BLOCK_CALLS;
	uint32_t mask = (1u << BLOCK_CALLS) - 1;

	if (from > start)
		mask &= mask << (from - start);
	if (to - start < BLOCK_CALLS)
		mask &= (1u << (to - start)) - 1;
	return mask & ((1u << BLOCK_CALLS) - 1);
}

static struct window_sum sum_in_calls(const struct window *window,
		const struct window_shape *shape, uint32_t epoch)
{
	uint32_t calls = clamp(shape->calls, 1, WINDOW_MAX_CALLS);
	uint64_t to = load_last(window);
	uint64_t from = to < calls ? 0 : to - calls;
	uint64_t blocks = to == 0 ? 0 : (to - 1) / BLOCK_CALLS - from / BLOCK_CALLS + 1;
	struct window_sum sum = { 0 };

	for (uint64_t i = 0; i < blocks; i++) {
		uint64_t block = from / BLOCK_CALLS + i;
		uint64_t word = load_to_judge(window, block % WINDOW_WORDS);
		uint32_t valid = (uint32_t)word & block_mask(block, from, to);

		if (word >> 32 != make_block_tag(epoch, block))
			continue;
		sum.total += (uint32_t)__builtin_popcount(valid);
		sum.errors += (uint32_t)__builtin_popcount((uint32_t)word >> BLOCK_CALLS & valid);
	}
	return sum;
}

void window_record(struct window *window, const struct window_shape *shape, uint32_t epoch,
		uint64_t now_ns, bool error)
{
	if (shape->calls != 0)
		record_in_calls(window, epoch, error);
	else if (!record_in_last_tick(window, shape, epoch, now_ns, error))
		record_elsewhere(window, shape, epoch, now_ns, error);
}

struct window_sum window_sum(const struct window *window, const struct window_shape *shape,
		uint32_t epoch, uint64_t now_ns)
{
	if (shape->calls != 0)
		return sum_in_calls(window, shape, epoch);
	return sum_in_time(window, shape, epoch, now_ns);
}

bool window_may_have_errors(const struct window *window, const struct window_shape *shape)
{
	uint32_t words = shape->calls != 0 ? WINDOW_WORDS : bucket_count(shape);
	uint64_t errors = shape->calls != 0 ? CALL_ERRORS : BUCKET_ERRORS;
	uint64_t all = 0;

	for (uint32_t i = 0; i < words; i++)
		all |= load_to_judge(window, i);
	return (all & errors) != 0;
}

bool window_has_moved(const struct window *window, const struct window_shape *shape,
		uint64_t now_ns)
{
	return shape->calls == 0 && !is_same_tick(shape, load_last(window), now_ns);
}
