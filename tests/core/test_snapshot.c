/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/bulkhead.h"
#include "core/snapshot.h"

#define MS 1000000ull
#define NOW (100000000 * MS)

static struct segment *segment;
static struct cell *cell;
static uint32_t cell_index;

static const struct window_shape shape = { .span_ns = 10000 * MS, .buckets = 10 };

static struct cell *cell_make(enum cell_kind kind, const char *host, const char *address_text,
		uint16_t port)
{
	struct cell_key key;
	struct address address;
	bool has_address = address_text && address_parse(address_text, &address);

	cell_key_make(&key, kind, "PAY", host, has_address ? &address : NULL, port, &shape);
	return segment_cell(segment, &key, cell_key_hash(&key), NOW);
}

static void setup(void)
{
	segment = segment_open_private();
	cr_assert(segment);
	cell = cell_make(CELL_CONNECTION, "pay.internal", "10.1.2.3", 443);
	cr_assert(cell);
	cell_index = segment_cell_index(segment, cell);
	atomic_store(&cell->sleep_ms, 5000);
}

TestSuite(snapshot, .init = setup, .timeout = 60);

static bool is_alive(struct seat_owner owner)
{
	return owner.pid != 13;
}

Test(snapshot, what_the_dead_hold_is_given_back_and_what_the_living_hold_stays)
{
	struct seat_owner dead = { 13, 1 }, alive = { 14, 1 };
	struct holder holders[2] = {
		{ .places = &segment->places, .seats = &segment->seats },
		{ .places = &segment->places, .seats = &segment->seats },
	};
	struct bulkhead calls = bulkhead_of(&holders[0], cell_key_hash(&cell->key),
			BULKHEAD_CALLS);
	struct cell_snapshot snapshot;
	place_t place;

	atomic_store(&holders[0].seat, seat_take(&segment->seats, dead, is_alive));
	atomic_store(&holders[1].seat, seat_take(&segment->seats, alive, is_alive));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(bulkhead_take(&calls, &holders[i % 2], 9, &place), BULKHEAD_TAKEN);
	cr_expect_eq(snapshot_reclaim(segment, is_alive), 2);
	cr_assert(snapshot_take(segment, cell_index, NOW, &snapshot));
	cr_expect_eq(snapshot.in_flight, 1);
}

static struct cell_snapshot taken(uint64_t now_ns)
{
	struct cell_snapshot snapshot;

	cr_assert(snapshot_take(segment, cell_index, now_ns, &snapshot));
	return snapshot;
}

Test(snapshot, only_live_cells_have_one)
{
	struct cell_snapshot snapshot = { .in_flight = 99 };
	unsigned int count = 0;

	for (uint32_t i = 0; i < SEGMENT_CELLS; i++)
		count += snapshot_take(segment, i, NOW, &snapshot);
	cr_assert_eq(count, 1);
	cr_assert_not(snapshot_take(segment, SEGMENT_CELLS, NOW, &snapshot));
	cr_assert_not(snapshot_take(segment, UINT32_MAX, NOW, &snapshot));
}

Test(snapshot, shows_the_limit_that_was_set_by_hand)
{
	cr_expect_eq(taken(NOW).concurrency, 0);
	atomic_store(&cell->concurrency, 7);
	cr_expect_eq(taken(NOW).concurrency, 7);
	atomic_store(&cell->concurrency, CELL_UNLIMITED);
	cr_expect_eq(taken(NOW).concurrency, CELL_UNLIMITED);
}

Test(snapshot, shows_the_window_of_the_current_epoch)
{
	struct cell_snapshot snapshot;
	uint32_t epoch = circuit_read(&cell->circuit).epoch;

	for (int i = 0; i < 30; i++)
		window_record(&cell->outcomes, &shape, epoch, NOW, i < 10);
	snapshot = taken(NOW);
	cr_assert_str_eq(snapshot.key.name, "PAY");
	cr_assert_eq(snapshot.requests, 30);
	cr_assert_eq(snapshot.errors, 10);
	cr_assert_eq(snapshot.error_percent, 33);
	cr_assert_eq(taken(NOW + 11000 * MS).requests, 0);
	circuit_set(&cell->circuit, CIRCUIT_CLOSED, (uint32_t)(NOW / MS));
	cr_assert_eq(taken(NOW).requests, 0, "a new epoch is empty");
	cr_assert_eq(taken(NOW).error_percent, 0);
}

Test(snapshot, shows_totals_and_latency)
{
	struct cell_snapshot snapshot;

	cell_count(cell, CELL_TOTAL_success);
	cell_count(cell, CELL_TOTAL_trips);
	cell_count(cell, CELL_TOTAL_trips);
	histogram_record(&cell->latency, 7 * MS);
	snapshot = taken(NOW);
	cr_assert_eq(snapshot.totals[CELL_TOTAL_success], 1);
	cr_assert_eq(snapshot.totals[CELL_TOTAL_trips], 2);
	cr_assert_float_eq(snapshot.latency.max_ms, 7, 0.1);
	cr_assert_eq(snapshot.in_flight, 0);
}

Test(snapshot, an_open_circuit_says_when_it_lets_a_call_through)
{
	struct cell_snapshot snapshot = taken(NOW);

	cr_assert_eq(snapshot.state, CIRCUIT_CLOSED);
	cr_assert_not(snapshot.has_retry);
	circuit_set(&cell->circuit, CIRCUIT_OPEN, (uint32_t)(NOW / MS));
	snapshot = taken(NOW + 2000 * MS);
	cr_assert_eq(snapshot.state, CIRCUIT_OPEN);
	cr_assert(snapshot.has_retry);
	cr_assert_eq(snapshot.retry_in_ms, 3000);
	snapshot = taken(NOW + 6000 * MS);
	cr_assert_eq(snapshot.state, CIRCUIT_OPEN, "nobody has asked since");
	cr_assert(snapshot.has_retry);
	cr_assert_eq(snapshot.retry_in_ms, 0);
	circuit_set(&cell->circuit, CIRCUIT_HALF_OPEN, (uint32_t)(NOW / MS));
	snapshot = taken(NOW);
	cr_assert_eq(snapshot.state, CIRCUIT_HALF_OPEN);
	cr_assert_not(snapshot.has_retry);
}

Test(snapshot, a_force_beats_the_state)
{
	struct cell_snapshot snapshot;

	atomic_store(&cell->override.force, FORCE_OPEN);
	snapshot = taken(NOW);
	cr_assert_eq(snapshot.state, CIRCUIT_OPEN);
	cr_assert_eq(snapshot.force, FORCE_OPEN);
	cr_assert_not(snapshot.has_retry, "it never does");
	circuit_set(&cell->circuit, CIRCUIT_OPEN, (uint32_t)(NOW / MS));
	atomic_store(&cell->override.force, FORCE_CLOSED);
	cr_assert_eq(taken(NOW).state, CIRCUIT_CLOSED);
	atomic_store(&cell->override.force, FORCE_NONE);
	cr_assert_eq(taken(NOW).state, CIRCUIT_OPEN);
	atomic_store(&cell->override.force, 12345);
	cr_assert_eq(taken(NOW).force, FORCE_NONE);
}

Test(snapshot, what_a_rule_forces_shows_unless_a_hand_beats_it)
{
	atomic_store(&cell->override.by_rule, FORCE_OPEN);
	cr_assert_eq(taken(NOW).state, CIRCUIT_OPEN);
	cr_assert_eq(taken(NOW).force, FORCE_OPEN);
	atomic_store(&cell->override.force, FORCE_CLOSED);
	cr_assert_eq(taken(NOW).state, CIRCUIT_CLOSED);
	atomic_store(&cell->override.force, FORCE_NONE);
	atomic_store(&cell->override.by_rule, 12345);
	cr_assert_eq(taken(NOW).force, FORCE_NONE);
}

static void expect_target(struct cell *of, const char *expected)
{
	struct cell_snapshot snapshot;
	char text[HOST_SIZE + 8];

	cr_assert(snapshot_take(segment, segment_cell_index(segment, of), NOW, &snapshot));
	snapshot_target(&snapshot, text, sizeof(text));
	cr_assert_str_eq(text, expected);
	snapshot_target(&snapshot, text, 5);
	cr_assert_eq(strlen(text), 4);
	cr_assert_eq(strncmp(text, expected, 4), 0);
}

Test(snapshot, a_target_reads_as_people_write_it)
{
	expect_target(cell, "pay.internal:443");
	expect_target(cell_make(CELL_LOOKUP, "pay.internal", NULL, 0), "pay.internal");
	expect_target(cell_make(CELL_CONNECTION, "", "10.1.2.3", 80), "10.1.2.3:80");
	expect_target(cell_make(CELL_CONNECTION, "", "2001:db8::1", 5432), "[2001:db8::1]:5432");
	expect_target(cell_make(CELL_CONNECTION, "2001:db8::1", NULL, 1), "[2001:db8::1]:1");
}

Test(snapshot, a_circuit_of_a_whole_rule_has_no_target_of_its_own)
{
	struct cell_snapshot snapshot;
	char text[32];
	struct cell *whole = cell_make(CELL_CONNECTION, "", NULL, 0);

	cr_assert(snapshot_take(segment, segment_cell_index(segment, whole), NOW, &snapshot));
	snapshot_target(&snapshot, text, sizeof(text));
	cr_assert_str_eq(text, "any");
}

Test(snapshot, random_bytes_come_out_within_bounds)
{
	unsigned int seed = 1;

	for (int round = 0; round < 2000; round++) {
		struct cell_snapshot snapshot;
		char text[64];

		for (size_t i = 0; i < sizeof(*cell) / 4; i++)
			((uint32_t *)cell)[i] =
				(uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
		snapshot = taken(NOW);
		cr_assert_lt(strlen(snapshot.key.name), sizeof(snapshot.key.name));
		cr_assert_leq(snapshot.state, CIRCUIT_HALF_OPEN);
		cr_assert_leq(snapshot.force, FORCE_CLOSED);
		cr_assert_leq(snapshot.error_percent, 100);
		cr_assert_leq(snapshot.errors, snapshot.requests);
		cr_assert_leq(snapshot.retry_in_ms, SETTINGS_MAX_MS);
		snapshot_target(&snapshot, text, sizeof(text));
		cr_assert_lt(strlen(text), sizeof(text));
	}
}
