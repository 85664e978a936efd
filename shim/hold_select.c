/* SPDX-License-Identifier: MIT */
#include "shim/hold_select.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/fd_table.h"
#include "shim/hold_wait.h"
#include "shim/inside.h"
#include "shim/scratch.h"
#include "shim/select_range.h"
#include "shim/vectors.h"
#include "shim/withheld.h"

#define SETS	 3
#define ON_STACK (FD_SETSIZE / SELECT_WORD_BITS) /* words of one set */

/* What each set asks for, as epoll would say it. */
static const uint32_t events_of[SETS] = { EPOLLIN, EPOLLOUT, EPOLLPRI };

struct question {
	uint64_t *sets[SETS]; /* the program's: only its answer is written there; may be NULL */
	int count;
	uint32_t words; /* of each set, those that the kernel looks at: there may be no more */
	const sigset_t *mask;
	bool is_precise; /* pselect */
	uint64_t end_ns;
};

static bool has(const uint64_t *set, uint32_t fd)
{
	return set && set[fd / SELECT_WORD_BITS] >> fd % SELECT_WORD_BITS & 1;
}

static uint32_t events_in(uint64_t *const sets[SETS], uint32_t fd)
{
	uint32_t events = 0;

	for (int i = 0; i < SETS; i++)
		events |= has(sets[i], fd) ? events_of[i] : 0;
	return events;
}

static void take_out(uint64_t *const sets[SETS], uint32_t fd, uint32_t events)
{
	for (int i = 0; i < SETS; i++) {
		if (sets[i] && events & events_of[i])
			sets[i][fd / SELECT_WORD_BITS] &= ~(UINT64_C(1) << fd % SELECT_WORD_BITS);
	}
}

static uint64_t any_of(uint64_t *const sets[SETS], uint32_t word)
{
	uint64_t any = 0;

	for (int i = 0; i < SETS; i++)
		any |= sets[i] ? sets[i][word] : 0;
	return any;
}

static uint64_t earlier(uint64_t due_ns, uint64_t time_ns, uint64_t now_ns)
{
	return time_ns > now_ns && (!due_ns || time_ns < due_ns) ? time_ns : due_ns;
}

/* Of what the sets name, takes out what is held; the earliest time at which something is let go, 0:
 * none. With news: the kernel calls them ready. */
static uint64_t hold_back(const struct question *question, uint64_t *const sets[SETS],
		bool with_news, uint64_t now_ns)
{
	uint64_t due_ns = 0;

	for (uint32_t word = 0; word < question->words; word++) {
		for (uint64_t bits = any_of(sets, word); bits; bits &= bits - 1) {
			uint32_t fd = word * SELECT_WORD_BITS + (uint32_t)__builtin_ctzll(bits);
			uint32_t events = events_in(sets, fd);
			struct hold_times times;

			if (fd >= (uint32_t)question->count || !fd_table_find((int)fd))
				continue;
			times = withheld_ask((int)fd, with_news ? events : 0, now_ns);
			take_out(sets, fd, halves_bits(&times, events, now_ns));
			due_ns = earlier(due_ns, times.in_ns, now_ns);
			due_ns = earlier(due_ns, times.out_ns, now_ns);
		}
	}
	return due_ns;
}

static void ask_again(const struct question *question, uint64_t *const asked[SETS])
{
	for (int i = 0; i < SETS; i++) {
		for (uint32_t word = 0; asked[i] && word < question->words; word++)
			asked[i][word] = question->sets[i][word];
	}
}

/* The kernel has cleared what it does not tell. */
static int answer(const struct question *question, uint64_t *const asked[SETS])
{
	int told = 0;

	for (int i = 0; i < SETS; i++) {
		for (uint32_t word = 0; asked[i] && word < question->words; word++) {
			question->sets[i][word] = asked[i][word];
			told += __builtin_popcountll(asked[i][word]);
		}
	}
	return told;
}

static bool is_empty(const struct question *question, uint64_t *const asked[SETS])
{
	for (uint32_t word = 0; word < question->words; word++) {
		if (any_of(asked, word))
			return false;
	}
	return true;
}

static int round_wait(const struct question *question, uint64_t *const asked[SETS],
		uint64_t until_ns, uint64_t now_ns)
{
	fd_set *reads = (fd_set *)(void *)asked[0], *writes = (fd_set *)(void *)asked[1];
	fd_set *others = (fd_set *)(void *)asked[2];
	struct timespec precise;
	struct timeval room;

	if (question->is_precise)
		return below()->pselect(question->count, reads, writes, others,
				hold_wait_timespec(until_ns, now_ns, &precise), question->mask);
	return below()->select(question->count, reads, writes, others,
			hold_wait_timeval(until_ns, now_ns, &room));
}

/* `memory` is for as many sets as the program gave. */
static int waited(const struct question *question, uint64_t *memory, uint64_t now_ns)
{
	uint64_t *asked[SETS];

	for (int i = 0; i < SETS; i++) {
		asked[i] = question->sets[i] ? memory : NULL;
		memory += question->sets[i] ? question->words : 0;
	}
	for (;;) {
		uint64_t due_ns, until_ns;
		int count;

		ask_again(question, asked);
		due_ns = hold_back(question, asked, false, now_ns);
		until_ns = hold_wait_until_ns(due_ns, question->end_ns, now_ns);
		count = round_wait(question, asked, until_ns, now_ns);
		if (count < 0)
			return count;
		now_ns = clock_now_ns();
		if (count)
			hold_back(question, asked, true, now_ns);
		if (!is_empty(question, asked) || now_ns >= question->end_ns)
			return answer(question, asked);
	}
}

__attribute__((noinline)) static int waited_on_stack(const struct question *question,
		uint64_t now_ns)
{
	uint64_t memory[SETS * ON_STACK];

	return waited(question, memory, now_ns);
}

/* False: without memory. */
static bool held(const struct question *question, uint64_t now_ns, int *ret_result)
{
	struct scratch scratch;
	uint64_t *memory;

	if (question->words <= ON_STACK) {
		*ret_result = waited_on_stack(question, now_ns);
		return true;
	}
	memory = scratch_take(&scratch,
			(size_t)SETS * question->words * sizeof(*memory));
	if (!memory)
		return false;
	*ret_result = waited(question, memory, now_ns);
	scratch_give(&scratch);
	return true;
}

/* Descriptors that the process cannot have are not looked at. */
static bool reach(struct question *question)
{
	uint32_t words = ((uint32_t)question->count + SELECT_WORD_BITS - 1) / SELECT_WORD_BITS;

	if (!select_range(words, &question->words))
		return false;
	if (question->words < words)
		question->count = (int)(question->words * SELECT_WORD_BITS);
	return (uint32_t)question->count <= fd_table.size;
}

/* Is there anything to be held, in the wait or by whom it delays? */
static bool concerns(struct question *question)
{
	if (!holds_are_expected() || process_is_vfork_child() || question->count < 0)
		return false;
	for (int i = 0; i < SETS; i++) {
		if (question->sets[i] && !pointer_may_be_read(question->sets[i]))
			return false;
	}
	if (!reach(question))
		return false;
	if (holds_exist())
		return true;
	for (uint32_t word = 0; word < question->words; word++) {
		for (uint64_t bits = any_of(question->sets, word); bits; bits &= bits - 1) {
			uint32_t fd = word * SELECT_WORD_BITS + (uint32_t)__builtin_ctzll(bits);

			if (fd < (uint32_t)question->count && fd_table_find((int)fd))
				return true;
		}
	}
	return false;
}

static struct question asks(int count, fd_set *reads, fd_set *writes, fd_set *others)
{
	return (struct question){
		.sets = { (uint64_t *)(void *)reads, (uint64_t *)(void *)writes,
				(uint64_t *)(void *)others },
		.count = count,
	};
}

/* Seconds and more microseconds than a second has are taken together, as the kernel does. */
static bool duration_of(const struct timeval *timeout, uint64_t *ret_ns)
{
	struct timespec time;

	if (!timeout)
		return hold_wait_of_timespec(NULL, ret_ns);
	if (!pointer_may_be_read(timeout) || timeout->tv_usec < 0)
		return false;
	time.tv_sec = timeout->tv_sec;
	if (timeout->tv_usec / 1000000 > INT64_MAX - time.tv_sec)
		return false;
	time.tv_sec += timeout->tv_usec / 1000000;
	time.tv_nsec = timeout->tv_usec % 1000000 * 1000;
	return timeout->tv_sec >= 0 && hold_wait_of_timespec(&time, ret_ns);
}

int hold_select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout)
{
	struct question question = asks(count, reads, writes, others);
	uint64_t duration_ns, now_ns;
	int result;

	if (!concerns(&question) || !duration_of(timeout, &duration_ns))
		return below()->select(count, reads, writes, others, timeout);
	now_ns = clock_now_ns();
	question.end_ns = hold_wait_end_ns(now_ns, duration_ns);
	if (!held(&question, now_ns, &result))
		return below()->select(count, reads, writes, others, timeout);
	/* What is left of it, in any case but of one that is as good as for ever. */
	if (timeout)
		hold_wait_timeval(question.end_ns, clock_now_ns(), timeout);
	return result;
}

int hold_pselect(int count, fd_set *reads, fd_set *writes, fd_set *others,
		const struct timespec *timeout, const sigset_t *mask)
{
	struct question question = asks(count, reads, writes, others);
	uint64_t duration_ns, now_ns;
	int result;

	question.mask = mask;
	question.is_precise = true;
	if (!concerns(&question) || (timeout && !pointer_may_be_read(timeout)) ||
			!hold_wait_of_timespec(timeout, &duration_ns))
		return below()->pselect(count, reads, writes, others, timeout, mask);
	now_ns = clock_now_ns();
	question.end_ns = hold_wait_end_ns(now_ns, duration_ns);
	if (!held(&question, now_ns, &result))
		return below()->pselect(count, reads, writes, others, timeout, mask);
	return result;
}
