/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cell_table.h"

#define SECOND 1000000000ull
#define NOW (1000 * SECOND)
#define LATER (NOW + CELL_IDLE_NS + 1)
#define STATE_CLAIMING (1ull << 62)
#define STATE_LIVE (2ull << 62)
#define STATE_VACANT (3ull << 62)
#define TURN(n) ((uint64_t)(n) << 48)
#define HASH(hash) ((hash) & 0xffffffffffffull)

static struct cell_table *table;

static void setup(void)
{
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	cr_assert_neq((void *)table, MAP_FAILED);
}

TestSuite(cell_table, .init = setup, .timeout = 60);

static struct cell_key key_of(unsigned int number)
{
	static const struct window_shape shape = { .span_ns = 10 * SECOND, .buckets = 10 };
	const struct address address = { .bytes = { 10, 0, 0, 1 }, .family = 4 };
	struct cell_key key;
	char host[HOST_SIZE];

	snprintf(host, sizeof(host), "host-%u.internal", number);
	cell_key_make(&key, CELL_CONNECTION, "PAY", host, &address, 443, &shape);
	return key;
}

static struct cell *get(unsigned int number, uint64_t now_ns)
{
	struct cell_key key = key_of(number);

	return cell_table_get(table, &key, cell_key_hash(&key), now_ns);
}

static unsigned int cells_of(unsigned int number)
{
	struct cell_key key = key_of(number);
	unsigned int count = 0;

	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
		struct cell *cell = cell_table_at(table, i);

		count += cell && memcmp(&cell->key, &key, sizeof(key)) == 0;
	}
	return count;
}

static void fill(unsigned int first, unsigned int count, uint64_t now_ns)
{
	for (unsigned int i = 0; i < count; i++)
		cr_assert(get(first + i, now_ns), "cell %u", i);
}

static bool is_blank(const struct cell *cell)
{
	static const struct cell blank;
	const size_t rest = offsetof(struct cell, totals);

	return memcmp((const char *)cell + rest, (const char *)&blank + rest,
		sizeof(*cell) - rest) == 0;
}

Test(cell_table, a_key_is_all_its_bytes)
{
	struct cell_key a, b;
	const struct window_shape calls = { .span_ns = 5, .buckets = 7, .calls = 100 };
	const struct window_shape same_calls = { .span_ns = 6, .buckets = 8, .calls = 100 };
	const struct address address = { .bytes = { 10, 0, 0, 1 }, .family = 4 };

	memset(&a, 0xaa, sizeof(a));
	memset(&b, 0x55, sizeof(b));
	cell_key_make(&a, CELL_LOOKUP, "PAY", "pay.internal", &address, 443, &calls);
	cell_key_make(&b, CELL_LOOKUP, "PAY", "pay.internal", NULL, 0, &same_calls);
	cr_assert_eq(memcmp(&a, &b, sizeof(a)), 0, "what means nothing makes no difference");
	cr_assert_eq(cell_key_hash(&a), cell_key_hash(&b));
	cr_assert_eq(a.address.family, 0);
	cell_key_make(&b, CELL_CONNECTION, "PAY", "pay.internal", &address, 443, &calls);
	cr_assert_neq(memcmp(&a, &b, sizeof(a)), 0);
	cr_assert_neq(cell_key_hash(&a), cell_key_hash(&b));
}

Test(cell_table, an_endless_name_is_shortened)
{
	char endless[1024];
	struct cell_key key;
	const struct window_shape shape = { .span_ns = SECOND, .buckets = 1 };

	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '\0';
	cell_key_make(&key, CELL_CONNECTION, endless, endless, NULL, 1, &shape);
	cr_assert_eq(strlen(key.name), sizeof(key.name) - 1);
	cr_assert_eq(strlen(key.host), sizeof(key.host) - 1);
}

Test(cell_table, one_key_has_one_cell)
{
	struct cell *cell = get(1, NOW);

	cr_assert(cell);
	cr_assert(is_blank(cell));
	cr_assert_eq(get(1, NOW), cell);
	cr_assert_neq(get(2, NOW), cell);
	cr_assert_eq(cells_of(1), 1);
	cr_assert_eq(cell_table_at(table, cell_table_index(table, cell)), cell);
}

Test(cell_table, knows_its_own_cells)
{
	struct cell *cell = get(1, NOW);
	struct cell_key key = key_of(1);
	uint32_t index = cell_table_index(table, cell);

	cr_assert(cell_table_is(table, cell, cell_key_hash(&key)));
	cr_assert_not(cell_table_is(table, cell, cell_key_hash(&key) + 1));
	cr_assert_not(cell_table_is(table, table->cells + (index + 1) % CELL_TABLE_SIZE,
		cell_key_hash(&key)));
	cr_assert_eq(cell_table_index(table, NULL), CELL_TABLE_SIZE);
	cr_assert_eq(cell_table_index(table, table->cells - 1), CELL_TABLE_SIZE);
	cr_assert_eq(cell_table_index(table, table->cells + CELL_TABLE_SIZE), CELL_TABLE_SIZE);
	cr_assert_eq(cell_table_index(table, (void *)((char *)cell + 8)), CELL_TABLE_SIZE);
	cr_assert_null(cell_table_at(table, CELL_TABLE_SIZE));
	cr_assert_null(cell_table_at(table, (index + 1) % CELL_TABLE_SIZE));
}

Test(cell_table, has_room_for_as_many_as_it_says)
{
	fill(0, CELL_TABLE_SIZE, NOW);
	cr_assert_null(get(CELL_TABLE_SIZE, NOW));
	for (unsigned int i = 0; i < CELL_TABLE_SIZE; i++)
		cr_assert_eq(cells_of(i), 1);
	cr_assert(get(7, NOW), "those that are there are found");
}

Test(cell_table, never_takes_a_cell_with_the_same_hash_for_its_own)
{
	struct cell_key one = key_of(1), two = key_of(2);
	struct cell *first = cell_table_get(table, &one, 5, NOW);
	struct cell *second = cell_table_get(table, &two, 5, NOW);

	cr_assert(first && second && first != second);
	cr_assert_eq(cell_table_get(table, &one, 5, NOW), first);
	cr_assert_eq(cell_table_get(table, &two, 5, NOW), second);
}

Test(cell_table, an_idle_cell_gets_another_target_when_all_are_taken)
{
	struct cell *cell;
	uint32_t epoch;

	fill(0, CELL_TABLE_SIZE, NOW);
	cell = get(42, NOW);
	atomic_store(&cell->totals[3], 17);
	atomic_store(&cell->outcomes.words[5], 17);
	atomic_store(&cell->latency.counts[5], 17);
	atomic_store(&cell->sleep_ms, 17);
	epoch = circuit_read(&cell->circuit).epoch;
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
		if (cell_table_at(table, i) != cell)
			atomic_store(&table->cells[i].used_ns, LATER);
	}
	cr_assert_eq(get(1000, LATER), cell);
	cr_assert(is_blank(cell));
	cr_assert_eq(circuit_read(&cell->circuit).state, CIRCUIT_CLOSED);
	cr_assert_eq(circuit_read(&cell->circuit).epoch, epoch + 1,
		"permits of the old target are late");
	cr_assert_eq(cells_of(42), 0);
	cr_assert_eq(cells_of(1000), 1);
	cr_assert_null(get(1001, LATER), "it is in use again");
	cr_assert_eq(get(1000, LATER), cell);
}

Test(cell_table, whoever_kept_a_pointer_can_tell_that_the_cell_has_moved_on)
{
	struct cell_key key = key_of(42);
	struct cell *cell;

	fill(0, CELL_TABLE_SIZE, NOW);
	cell = get(42, NOW);
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
		if (cell_table_at(table, i) != cell)
			atomic_store(&table->cells[i].used_ns, LATER);
	}
	cr_assert(cell_table_is(table, cell, cell_key_hash(&key)));
	get(1000, LATER);
	cr_assert_not(cell_table_is(table, cell, cell_key_hash(&key)));
}

Test(cell_table, an_idle_cell_stays_while_there_is_room)
{
	fill(0, CELL_TABLE_SIZE - 1, NOW);
	get(1000, LATER);
	for (unsigned int i = 0; i < CELL_TABLE_SIZE - 1; i++)
		cr_assert_eq(cells_of(i), 1);
}

Test(cell_table, what_is_open_or_forced_or_has_a_long_window_is_never_idle)
{
	fill(0, CELL_TABLE_SIZE, NOW);
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
		struct cell *cell = cell_table_at(table, i);

		switch (i % 4) {
		case 0:
			circuit_set(&cell->circuit, CIRCUIT_OPEN, 1);
			break;
		case 1:
			circuit_set(&cell->circuit, CIRCUIT_HALF_OPEN, 1);
			break;
		case 2:
			atomic_store(&cell->override.force, FORCE_CLOSED);
			break;
		default:
			cell->key.window_span_ns = 3600 * SECOND;
		}
	}
	cr_assert_null(get(1000, LATER));
	cr_assert(get(1000, NOW + 3601 * SECOND), "the window is over");
}

Test(cell_table, a_time_of_another_boot_is_long_ago)
{
	fill(0, CELL_TABLE_SIZE, 1000000 * SECOND);
	cr_assert(get(1000, NOW));
}

Test(cell_table, a_full_table_is_not_searched_for_idle_cells_on_every_call)
{
	fill(0, CELL_TABLE_SIZE, NOW);
	cr_assert_null(get(1000, NOW));
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++)
		atomic_store(&table->cells[i].used_ns, 0);
	cr_assert_null(get(1000, NOW + SECOND / 20));
	cr_assert(get(1000, NOW + SECOND));
}

static uint32_t home_of(const struct cell_key *key)
{
	return (uint32_t)(cell_key_hash(key) % CELL_TABLE_SIZE);
}

Test(cell_table, a_claim_whose_process_died_is_completed_by_the_next)
{
	struct cell_key key = key_of(1);
	uint32_t home = home_of(&key);

	atomic_store(&table->index[home], STATE_CLAIMING | TURN(9) | HASH(cell_key_hash(&key)));
	memcpy(&table->cells[home].key, &key, 100);
	atomic_store(&table->cells[home].totals[0], 99);
	cr_assert_null(cell_table_at(table, home));
	cr_assert_eq(get(1, NOW), &table->cells[home]);
	cr_assert_eq(memcmp(&table->cells[home].key, &key, sizeof(key)), 0);
	cr_assert(is_blank(&table->cells[home]));
	cr_assert_eq(atomic_load(&table->index[home]),
		STATE_LIVE | TURN(9) | HASH(cell_key_hash(&key)));
}

Test(cell_table, a_claim_for_another_target_is_passed_over)
{
	struct cell_key key = key_of(1);
	uint32_t home = home_of(&key);

	atomic_store(&table->index[home], STATE_CLAIMING | TURN(1) | 12345);
	cr_assert_eq(get(1, NOW), &table->cells[(home + 1) % CELL_TABLE_SIZE]);
	cr_assert_eq(atomic_load(&table->index[home]), STATE_CLAIMING | TURN(1) | 12345);
}

Test(cell_table, a_claim_that_nobody_completes_is_given_to_another_target)
{
	fill(0, CELL_TABLE_SIZE, NOW);
	atomic_store(&table->index[77], STATE_CLAIMING | TURN(1) | 12345);
	atomic_store(&table->cells[77].used_ns, NOW);
	cr_assert_null(get(1000, NOW + CELL_IDLE_NS));
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
		if (i != 77)
			atomic_store(&table->cells[i].used_ns, LATER);
	}
	cr_assert_eq(get(1000, LATER + SECOND), &table->cells[77]);
}

Test(cell_table, of_two_claims_for_one_target_the_earlier_goes_on)
{
	struct cell_key key = key_of(1);
	uint32_t home = home_of(&key), next = (home + 1) % CELL_TABLE_SIZE;
	uint64_t claim = STATE_CLAIMING | TURN(3) | HASH(cell_key_hash(&key));

	atomic_store(&table->index[home], claim);
	atomic_store(&table->index[next], claim);
	cr_assert_eq(get(1, NOW), &table->cells[home]);
	cr_assert_eq(atomic_load(&table->index[next]), STATE_VACANT | TURN(3));
}

Test(cell_table, a_live_cell_wins_over_any_claim)
{
	struct cell_key key = key_of(1);
	uint32_t home = home_of(&key), next = (home + 1) % CELL_TABLE_SIZE;
	uint64_t hash = HASH(cell_key_hash(&key));

	/* As if the next one had been claimed while this one still held another target. */
	atomic_store(&table->index[home], STATE_CLAIMING | TURN(3) | hash);
	table->cells[next].key = key;
	atomic_store(&table->index[next], STATE_LIVE | TURN(1) | hash);
	cr_assert_eq(get(1, NOW), &table->cells[next]);
}

Test(cell_table, a_vacant_place_hides_nothing_behind_it_and_is_taken_again)
{
	struct cell_key one = key_of(1), two = key_of(2);
	uint64_t hash = cell_key_hash(&one);
	uint32_t home = home_of(&one);
	struct cell *behind;

	atomic_store(&table->index[home], STATE_CLAIMING | TURN(1) | 12345);
	behind = get(1, NOW);
	atomic_store(&table->index[home], STATE_VACANT | TURN(1));
	cr_assert_eq(get(1, NOW), behind);
	/* Another key of the same home. */
	hash = (HASH(hash) ^ 1) - (HASH(hash) ^ 1) % CELL_TABLE_SIZE + home;
	cr_assert_eq(cell_table_get(table, &two, hash, NOW), &table->cells[home]);
}

/* Both wait for the other, then run; the last one to arrive lets both go. */
static void meet(_Atomic uint32_t *arrived, uint32_t *round)
{
	*round += 2;
	atomic_fetch_add(arrived, 1);
	while (atomic_load(arrived) < *round)
		sched_yield();
}

struct race {
	_Atomic uint32_t arrived;
	_Atomic uint32_t found[2][10000];
};

static struct race *race_make(void)
{
	struct race *race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq((void *)race, MAP_FAILED);
	return race;
}

/* Both sides claim the same new key in each round. `prepare` is run by one side between rounds. */
static void race_run(struct race *race, int side, void (*prepare)(unsigned int round),
		uint64_t (*now_ns)(unsigned int round, int side))
{
	uint32_t meeting = 0;

	for (unsigned int round = 0; round < 10000; round++) {
		struct cell *cell;

		if (side == 0)
			prepare(round);
		meet(&race->arrived, &meeting);
		cell = get(round, now_ns(round, side));
		atomic_store(&race->found[side][round],
			cell ? cell_table_index(table, cell) : CELL_TABLE_SIZE);
		meet(&race->arrived, &meeting);
		if (side == 0 && cells_of(round) != 1)
			_exit(2);
	}
}

static void race_expect(struct race *race, void (*prepare)(unsigned int round),
		uint64_t (*now_ns)(unsigned int round, int side))
{
	pid_t children[2];
	int status;

	for (int side = 0; side < 2; side++) {
		children[side] = fork();
		if (!children[side]) {
			race_run(race, side, prepare, now_ns);
			_exit(0);
		}
	}
	for (int side = 0; side < 2; side++) {
		cr_assert_eq(waitpid(children[side], &status, 0), children[side]);
		cr_assert_eq(status, 0, "side %d: %#x", side, status);
	}
	for (unsigned int round = 0; round < 10000; round++) {
		cr_assert_eq(race->found[0][round], race->found[1][round], "round %u", round);
		cr_assert_lt(race->found[0][round], CELL_TABLE_SIZE, "round %u", round);
	}
}

static void empty_often(unsigned int round)
{
	if (round % 300 == 0)
		memset(table, 0, sizeof(*table));
}

static uint64_t same_time(unsigned int round, int side)
{
	(void)round;
	(void)side;
	return NOW;
}

Test(cell_table, two_processes_that_claim_at_once_get_one_cell)
{
	race_expect(race_make(), empty_often, same_time);
}

/* A full table. For one side all cells are idle, for the other only every third: the two prefer
 * different ones. */
static void fill_and_age(unsigned int round)
{
	uint64_t now_ns = NOW + round * SECOND;

	if (round == 0)
		fill(100000, CELL_TABLE_SIZE, NOW);
	for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++)
		atomic_store(&table->cells[i].used_ns, now_ns - CELL_IDLE_NS - (i % 3 == 0));
}

static uint64_t times_apart(unsigned int round, int side)
{
	return NOW + round * SECOND + (unsigned int)side;
}

Test(cell_table, two_processes_that_reuse_idle_cells_at_once_end_with_one)
{
	race_expect(race_make(), fill_and_age, times_apart);
}

Test(cell_table, random_bytes_harm_nobody)
{
	unsigned int seed = 1;

	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(*table) / 4; i++)
			((uint32_t *)table)[i] =
				(uint32_t)rand_r(&seed) << 16 ^ (uint32_t)rand_r(&seed);
		for (unsigned int i = 0; i < 50; i++) {
			struct cell *cell = get(i, NOW);
			struct cell_key key = key_of(i);

			if (cell)
				cr_assert_eq(memcmp(&cell->key, &key, sizeof(key)), 0);
		}
		for (uint32_t i = 0; i < CELL_TABLE_SIZE; i++) {
			struct cell_key key;

			if (!cell_table_key(table, i, &key))
				continue;
			cr_assert_lt(strlen(key.name), sizeof(key.name));
			cr_assert_lt(strlen(key.host), sizeof(key.host));
			cr_assert_leq(key.kind, CELL_LOOKUP);
		}
	}
}
