/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/event.h"

static struct event_ring *ring;

static void setup(void)
{
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)ring, MAP_FAILED);
}

TestSuite(event, .init = setup, .timeout = 60);

/* Every field says the same number. */
static void write_number(uint32_t number)
{
	struct event event = {
		.sequence = 999,
		.time_ns = number,
		.kind = EVENT_TRIPPED,
		.pid = number,
		.requests = number,
		.errors = number,
		.detail = number,
	};

	snprintf(event.name, sizeof(event.name), "%u", number);
	snprintf(event.target, sizeof(event.target), "%u", number);
	event_write(ring, &event);
}

static bool is_whole(const struct event *event)
{
	char text[EVENT_NAME_SIZE];

	snprintf(text, sizeof(text), "%u", event->pid);
	return event->time_ns == event->pid && event->kind == EVENT_TRIPPED &&
		event->requests == event->pid && event->errors == event->pid &&
		event->detail == event->pid && strcmp(event->name, text) == 0 &&
		strcmp(event->target, text) == 0;
}

/* What a writer leaves behind that died after the first step, or after the second. */
static void die_before_slot(void)
{
	atomic_fetch_add(&ring->head, 1);
}

static void die_in_slot(void)
{
	uint64_t sequence = atomic_fetch_add(&ring->head, 1) + 1;

	atomic_store(&ring->slots[sequence % EVENT_RING_SIZE].sequence, sequence << 1 | 1);
	atomic_store(&ring->slots[sequence % EVENT_RING_SIZE].words[0], 12345);
}

static uint64_t read_number(uint64_t *after)
{
	struct event event;

	if (!event_read(ring, *after, &event))
		return 0;
	cr_assert_gt(event.sequence, *after);
	cr_assert(is_whole(&event));
	*after = event.sequence;
	return event.pid;
}

Test(event, kinds_have_names)
{
	cr_assert_str_eq(event_kind_name(EVENT_TRIPPED), "tripped");
	cr_assert_str_eq(event_kind_name(EVENT_OVERFLOW), "overflow");
	cr_assert_str_eq(event_kind_name(EVENT_INJECTED), "injected");
	for (int kind = 0; kind < EVENT_COUNT; kind++)
		cr_assert_gt(strlen(event_kind_name((enum event_kind)kind)), 1);
	cr_assert_str_eq(event_kind_name(EVENT_COUNT), "?");
	cr_assert_str_eq(event_kind_name((enum event_kind)-1), "?");
}

Test(event, an_empty_ring_has_none)
{
	uint64_t after = 0;

	cr_assert_eq(event_newest(ring), 0);
	cr_assert_eq(read_number(&after), 0);
}

Test(event, come_out_in_the_order_they_went_in)
{
	uint64_t after = 0;

	for (uint32_t i = 1; i <= 10; i++)
		write_number(i);
	cr_assert_eq(event_newest(ring), 10);
	for (uint32_t i = 1; i <= 10; i++) {
		cr_assert_eq(read_number(&after), i);
		cr_assert_eq(after, i);
	}
	cr_assert_eq(read_number(&after), 0);
	write_number(11);
	cr_assert_eq(read_number(&after), 11);
}

Test(event, a_lapped_reader_goes_on_with_the_oldest_kept)
{
	uint64_t after = 3;

	for (uint32_t i = 1; i <= EVENT_RING_SIZE * 3; i++)
		write_number(i);
	for (uint32_t i = EVENT_RING_SIZE * 2 + 1; i <= EVENT_RING_SIZE * 3; i++)
		cr_assert_eq(read_number(&after), i);
	cr_assert_eq(read_number(&after), 0);
}

Test(event, a_half_written_one_is_skipped_once_a_newer_one_is_complete)
{
	uint64_t after = 0;

	write_number(1);
	die_before_slot();
	die_in_slot();
	cr_assert_eq(read_number(&after), 1);
	cr_assert_eq(read_number(&after), 0);
	write_number(4);
	cr_assert_eq(read_number(&after), 4);
}

Test(event, a_dead_writers_slot_serves_the_next_lap)
{
	uint64_t after = 0;

	die_in_slot();
	for (uint32_t i = 2; i <= EVENT_RING_SIZE + 1; i++)
		write_number(i);
	for (uint32_t i = 2; i <= EVENT_RING_SIZE + 1; i++)
		cr_assert_eq(read_number(&after), i);
}

Test(event, a_number_that_was_never_given_out_blocks_no_slot)
{
	uint64_t after = 0;

	atomic_store(&ring->slots[1].sequence, (uint64_t)(EVENT_RING_SIZE + 1) << 1);
	write_number(77);
	cr_assert_eq(read_number(&after), 77);
}

Test(event, words_of_two_writers_are_no_event)
{
	struct event event;

	write_number(1);
	atomic_store(&ring->slots[1].words[0], 999);
	cr_assert_not(event_read(ring, 0, &event));
	atomic_store(&ring->slots[1].words[0], 1);
	cr_assert(event_read(ring, 0, &event));
	atomic_fetch_xor(&ring->slots[1].check, 1);
	cr_assert_not(event_read(ring, 0, &event));
}

Test(event, foreign_text_comes_out_terminated_and_printable)
{
	struct event event = { .kind = EVENT_COUNT + 5, .is_lookup = 77 }, got;

	memset(event.name, '\x1b', sizeof(event.name));
	memset(event.target, 0xc3, sizeof(event.target));
	event_write(ring, &event);
	cr_assert(event_read(ring, 0, &got));
	cr_assert_eq(strlen(got.name), sizeof(got.name) - 1);
	cr_assert_eq(strspn(got.name, "?"), sizeof(got.name) - 1);
	cr_assert_eq(strspn(got.target, "?"), sizeof(got.target) - 1);
	cr_assert_eq(got.kind, EVENT_NONE);
	cr_assert_eq(got.is_lookup, 1);
}

Test(event, any_bit_pattern_is_a_ring)
{
	static const uint64_t heads[] = { 0, 1, 600, 1ull << 32, 1ull << 63, UINT64_MAX - 1,
		UINT64_MAX };
	unsigned int seed = 1;

	for (size_t i = 0; i < 70; i++) {
		struct event event;
		uint64_t after = 0;

		for (size_t j = 0; j < sizeof(*ring) / 4; j++)
			((uint32_t *)ring)[j] =
				(uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
		atomic_store(&ring->head, heads[i % 7]);
		cr_assert_not(event_read(ring, 0, &event), "garbage is no event");
		cr_assert_not(event_read(ring, UINT64_MAX, &event));
		/* Number 0 means an empty slot: the first one after a head of -1 is lost. */
		for (uint32_t k = 1; k <= EVENT_RING_SIZE + 2; k++)
			write_number(k);
		if (heads[i % 7] == UINT64_MAX || heads[i % 7] == UINT64_MAX - 1)
			after = 0;
		else
			after = heads[i % 7] + 2;
		cr_assert_neq(read_number(&after), 0, "head %zu", i % 7);
	}
}

static void write_for_ever(uint32_t number)
{
	for (;;)
		write_number(number++);
}

Test(event, killed_writers_stop_neither_readers_nor_writers)
{
	uint64_t after = 0, count = 0;

	for (uint32_t round = 0; round < 60; round++) {
		pid_t writers[2];

		for (int i = 0; i < 2; i++) {
			writers[i] = fork();
			if (!writers[i])
				write_for_ever(round * 1000000 + 1);
		}
		for (uint64_t until = event_newest(ring) + 200 * (round + 1);
				event_newest(ring) < until;)
			count += read_number(&after) != 0;
		for (int i = 0; i < 2; i++) {
			kill(writers[i], SIGKILL);
			waitpid(writers[i], NULL, 0);
		}
	}
	cr_assert_gt(count, 0);
	write_number(1);
	while (read_number(&after))
		count++;
	cr_assert_eq(after, event_newest(ring));
}
