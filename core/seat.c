/* SPDX-License-Identifier: MIT */
#include "core/seat.h"

#include <stddef.h>

#define PID_BITS	22
#define PID_MASK	((UINT64_C(1) << PID_BITS) - 1)
#define START_MASK	((UINT64_C(1) << SEAT_START_BITS) - 1)
#define GENERATION_BITS 20
#define GENERATION_MASK ((UINT32_C(1) << GENERATION_BITS) - 1)
#define INDEX_BITS	(32 - GENERATION_BITS)
#define INDEX_MASK	((UINT32_C(1) << INDEX_BITS) - 1)

static_assert(SEAT_COUNT <= INDEX_MASK, "index + 1 fits a handle");

static uint64_t pack(uint32_t generation, struct seat_owner owner)
{
	return (uint64_t)(generation & GENERATION_MASK) << (SEAT_START_BITS + PID_BITS) |
	       (owner.start & START_MASK) << PID_BITS | (owner.pid & PID_MASK);
}

static uint32_t generation_of(uint64_t word)
{
	return (uint32_t)(word >> (SEAT_START_BITS + PID_BITS)) & GENERATION_MASK;
}

static struct seat_owner owner_of(uint64_t word)
{
	return (struct seat_owner){
		.pid = (uint32_t)(word & PID_MASK),
		.start = (uint32_t)(word >> PID_BITS & START_MASK),
	};
}

static seat_t handle(uint32_t index, uint32_t generation)
{
	return generation << INDEX_BITS | (index + 1);
}

/* The seat's word; NULL for a handle that no seat has. */
static _Atomic uint64_t *word_of(const struct seat_table *table, seat_t seat)
{
	uint32_t index = (seat & INDEX_MASK) - 1;

	return index < SEAT_COUNT ? (_Atomic uint64_t *)&table->seats[index] : NULL;
}

/* The generation stays, so that what was held stays void. */
static void clear(_Atomic uint64_t *word, uint64_t seen)
{
	atomic_compare_exchange_strong_explicit(word, &seen,
			pack(generation_of(seen), (struct seat_owner){ 0 }), memory_order_acq_rel,
			memory_order_relaxed);
}

bool seat_is_known(const struct seat_table *table, uint32_t pid)
{
	for (uint32_t i = 0; i < SEAT_COUNT; i++) {
		uint64_t seen = atomic_load_explicit(&table->seats[i], memory_order_relaxed);

		if (owner_of(seen).pid == (pid & PID_MASK))
			return true;
	}
	return false;
}

void seat_drop(struct seat_table *table, struct seat_owner owner)
{
	uint64_t own = pack(0, owner);

	for (uint32_t i = 0; i < SEAT_COUNT; i++) {
		uint64_t seen = atomic_load_explicit(&table->seats[i], memory_order_relaxed);

		if (pack(0, owner_of(seen)) == own)
			clear(&table->seats[i], seen);
	}
}

/* The first free seat, or 0. */
static seat_t take_free(struct seat_table *table, struct seat_owner owner)
{
	for (uint32_t i = 0; i < SEAT_COUNT; i++) {
		uint64_t seen = atomic_load_explicit(&table->seats[i], memory_order_relaxed);
		uint32_t generation = generation_of(seen) + 1;

		/* acq_rel: whoever finds the seat taken finds what its holder wrote before. */
		if (owner_of(seen).pid == 0 &&
				atomic_compare_exchange_strong_explicit(&table->seats[i], &seen,
						pack(generation, owner), memory_order_acq_rel,
						memory_order_relaxed))
			return handle(i, generation & GENERATION_MASK);
	}
	return 0;
}

static void free_dead(struct seat_table *table, seat_is_alive *is_alive)
{
	for (uint32_t i = 0; i < SEAT_COUNT; i++) {
		uint64_t seen = atomic_load_explicit(&table->seats[i], memory_order_relaxed);

		if (owner_of(seen).pid != 0 && !is_alive(owner_of(seen)))
			clear(&table->seats[i], seen);
	}
}

seat_t seat_take(struct seat_table *table, struct seat_owner owner, seat_is_alive *is_alive)
{
	seat_t seat;

	if ((owner.pid & PID_MASK) == 0)
		return 0;
	seat = take_free(table, owner);
	if (seat != 0)
		return seat;
	free_dead(table, is_alive);
	return take_free(table, owner);
}

static bool is_of(uint64_t word, seat_t seat)
{
	return owner_of(word).pid != 0 && generation_of(word) == seat >> INDEX_BITS;
}

void seat_leave(struct seat_table *table, seat_t seat)
{
	_Atomic uint64_t *word = word_of(table, seat);
	uint64_t seen;

	if (word == NULL)
		return;
	seen = atomic_load_explicit(word, memory_order_relaxed);
	if (is_of(seen, seat))
		clear(word, seen);
}

bool seat_is_taken(const struct seat_table *table, seat_t seat)
{
	const _Atomic uint64_t *word = word_of(table, seat);

	return word != NULL && is_of(atomic_load_explicit(word, memory_order_acquire), seat);
}

bool seat_is_held(struct seat_table *table, seat_t seat, seat_is_alive *is_alive)
{
	_Atomic uint64_t *word = word_of(table, seat);
	uint64_t seen;

	if (word == NULL)
		return false;
	seen = atomic_load_explicit(word, memory_order_acquire);
	if (!is_of(seen, seat))
		return false;
	if (is_alive(owner_of(seen)))
		return true;
	clear(word, seen);
	return false;
}
