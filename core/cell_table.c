/* SPDX-License-Identifier: MIT */
/*
 * Open addressing over the words of the index.
 *
 *   FREE -> CLAIMING -> LIVE -> CLAIMING (for another target) -> ...
 *              \-> VACANT -> CLAIMING
 *
 * Nothing becomes FREE again, so a search may end at a FREE word. Every step is one
 * compare-and-swap that anybody can take: whoever finds its own target CLAIMING completes it.
 *
 * One target, one cell: a claim is published first, and only then are all other words searched for
 * the same target. Of two that claim at once at least one sees the other (both steps are
 * sequentially consistent). LIVE wins over CLAIMING, and of two CLAIMING words the earlier in
 * probe order: the other becomes VACANT, by whoever sees it.
 */
#include "core/cell_table.h"

#include <stddef.h>

#include "core/text.h"
#include "core/words.h"

enum index_state { INDEX_FREE, INDEX_CLAIMING, INDEX_LIVE, INDEX_VACANT };

#define STATE_SHIFT 62
#define TURN_ONE (1ull << 48)
#define TURN_MASK (0x3fffull << 48)
#define HASH_MASK (TURN_ONE - 1)

#define IDLE_MAX_NS 86400000000000ull /* whatever window a key names */
#define FULL_NS 100000000ull
/* Each round that fails was won by somebody else, if the words are not garbage. */
#define MAX_ROUNDS 32

/* A target on its way to its cell. */
struct search {
	struct cell_table *table;
	const struct cell_key *key;
	uint64_t hash, now_ns;
};

void cell_key_make(struct cell_key *key, enum cell_kind kind, const char *name, const char *host,
		const struct address *address, uint16_t port, const struct window_shape *window)
{
	bool is_lookup = kind == CELL_LOOKUP;

	/* Padding and the ends of the texts are compared and hashed too. */
	*key = (struct cell_key){ .kind = (uint8_t)kind, .port = is_lookup ? 0 : port };
	text_copy(key->name, sizeof(key->name), name);
	text_copy(key->host, sizeof(key->host), host);
	if (address && !is_lookup)
		key->address = *address;
	key->window_calls = window->calls;
	if (!window->calls) {
		key->window_span_ns = window->span_ns;
		key->window_buckets = window->buckets;
	}
}

uint64_t cell_key_hash(const struct cell_key *key)
{
	return words_hash(key, sizeof(*key));
}

static enum index_state state_of(uint64_t word)
{
	return (enum index_state)(word >> STATE_SHIFT);
}

static uint64_t word_make(enum index_state state, uint64_t turn_word, uint64_t hash)
{
	return (uint64_t)state << STATE_SHIFT | (turn_word & TURN_MASK) | (hash & HASH_MASK);
}

static uint32_t probe(uint64_t hash, uint32_t step)
{
	uint32_t slot = (uint32_t)(hash % CELL_TABLE_SIZE) + step;

	return slot < CELL_TABLE_SIZE ? slot : slot - CELL_TABLE_SIZE;
}

static bool index_swap(struct cell_table *table, uint32_t slot, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&table->index[slot], &from, to,
		memory_order_seq_cst, memory_order_relaxed);
}

/* Is the cell at `slot`, seen as `word`, live and this target's? */
static bool slot_is_ours(const struct search *search, uint32_t slot, uint64_t word)
{
	const struct cell_table *table = search->table;

	/* A cell may be given to another target while its key is compared. */
	return (word & ~TURN_MASK) == word_make(INDEX_LIVE, 0, search->hash) &&
			words_equal(&table->cells[slot].key, search->key, sizeof(*search->key)) &&
			atomic_load_explicit(&table->index[slot], memory_order_relaxed) == word;
}

static struct cell *cell_find(const struct search *search)
{
	struct cell_table *table = search->table;

	for (uint32_t step = 0; step < CELL_TABLE_SIZE; step++) {
		uint32_t slot = probe(search->hash, step);
		uint64_t word = atomic_load_explicit(&table->index[slot], memory_order_acquire);

		if (state_of(word) == INDEX_FREE)
			return NULL;
		if (slot_is_ours(search, slot, word))
			return &table->cells[slot];
	}
	return NULL;
}

/* Stopped clocks and another boot's times count as long ago as well. */
static bool cell_is_unused(const struct cell *cell, uint64_t now_ns)
{
	uint64_t used_ns = atomic_load_explicit(&cell->used_ns, memory_order_relaxed);
	uint64_t away_ns = now_ns > used_ns ? now_ns - used_ns : used_ns - now_ns;
	uint64_t span_ns;

	if (away_ns <= CELL_IDLE_NS)
		return false;
	words_load(&span_ns, &cell->key.window_span_ns, sizeof(span_ns));
	return away_ns > (span_ns < IDLE_MAX_NS ? span_ns : IDLE_MAX_NS);
}

static bool slot_is_idle(const struct cell_table *table, uint32_t slot, uint64_t word,
		uint64_t now_ns)
{
	const struct cell *cell = &table->cells[slot];
	uint32_t force;

	if (!cell_is_unused(cell, now_ns))
		return false;
	/* A claim that nobody completed for a minute: its process died, nobody else wants it. */
	if (state_of(word) != INDEX_LIVE)
		return true;
	force = atomic_load_explicit(&cell->override.force, memory_order_relaxed);
	return force != FORCE_OPEN && force != FORCE_CLOSED &&
			circuit_read(&cell->circuit).state == CIRCUIT_CLOSED;
}

/* Claims a slot that `was` seen. True and *ret_claimed, the word that says so. */
static bool slot_claim(const struct search *search, uint32_t slot, uint64_t was,
		uint64_t *ret_claimed)
{
	struct cell *cell = &search->table->cells[slot];

	/* Before the claim, so that nobody takes a fresh claim for an abandoned one. */
	atomic_store_explicit(&cell->used_ns, search->now_ns, memory_order_relaxed);
	*ret_claimed = word_make(INDEX_CLAIMING, was + TURN_ONE, search->hash);
	return index_swap(search->table, slot, was, *ret_claimed);
}

/* Is no other word for this target, now that the claim at `own_step` shows? If not, the claim was
 * given back. */
static bool claim_is_alone(const struct search *search, uint32_t own_step, uint64_t claimed)
{
	struct cell_table *table = search->table;
	uint32_t own = probe(search->hash, own_step);

	for (uint32_t step = 0; step < CELL_TABLE_SIZE; step++) {
		uint32_t slot = probe(search->hash, step);
		uint64_t word = atomic_load_explicit(&table->index[slot], memory_order_seq_cst);

		if (step == own_step || (word & HASH_MASK) != (search->hash & HASH_MASK))
			continue;
		if ((state_of(word) == INDEX_CLAIMING && step < own_step) ||
				slot_is_ours(search, slot, word)) {
			index_swap(table, own, claimed, word_make(INDEX_VACANT, claimed, 0));
			return false;
		}
		/* Ours is the earlier; but if the other is LIVE by now, it wins: look again. */
		if (state_of(word) == INDEX_CLAIMING &&
				!index_swap(table, slot, word, word_make(INDEX_VACANT, word, 0)))
			step--;
	}
	return true;
}

/* Everything but the circuit, which goes on counting epochs. */
static bool cell_clear(const struct search *search, uint32_t slot, uint64_t claimed)
{
	const _Atomic uint64_t *guard = &search->table->index[slot];
	struct cell *cell = &search->table->cells[slot];
	const size_t rest = offsetof(struct cell, totals);

	return words_store(&cell->key, search->key, sizeof(cell->key), guard, claimed) &&
		words_store(&cell->override, NULL, sizeof(cell->override), guard, claimed) &&
		words_store(&cell->consecutive, NULL, sizeof(cell->consecutive), guard, claimed) &&
		words_store((char *)cell + rest, NULL, sizeof(*cell) - rest, guard, claimed);
}

/* The owner of a claim does this once; who completes it for a dead owner leaves the circuit. */
static void epoch_renew(const struct search *search, uint32_t slot, uint64_t was, uint64_t claimed)
{
	struct cell_table *table = search->table;
	struct circuit *circuit = &table->cells[slot].circuit;

	if (state_of(was) == INDEX_FREE &&
			!atomic_load_explicit(&circuit->word, memory_order_relaxed))
		return;
	if (atomic_load_explicit(&table->index[slot], memory_order_relaxed) == claimed)
		circuit_set(circuit, CIRCUIT_CLOSED, (uint32_t)(search->now_ns / 1000000));
}

static struct cell *claim_complete(const struct search *search, uint32_t step, uint64_t claimed)
{
	uint32_t slot = probe(search->hash, step);

	if (!claim_is_alone(search, step, claimed) || !cell_clear(search, slot, claimed) ||
			!index_swap(search->table, slot, claimed,
				word_make(INDEX_LIVE, claimed, search->hash)))
		return NULL;
	return &search->table->cells[slot];
}

static bool claim_stands(const struct search *search, uint64_t word)
{
	return (word & ~TURN_MASK) == word_make(INDEX_CLAIMING, 0, search->hash);
}

/* The first step at which a claim of this target stands, else the first that can be claimed, else
 * the first idle one; CELL_TABLE_SIZE where there is none. */
static uint32_t step_choose(const struct search *search, bool with_idle, uint64_t *ret_word)
{
	const struct cell_table *table = search->table;
	uint32_t chosen = CELL_TABLE_SIZE;

	for (uint32_t step = 0; step < CELL_TABLE_SIZE; step++) {
		uint32_t slot = probe(search->hash, step);
		uint64_t word = atomic_load_explicit(&table->index[slot], memory_order_acquire);
		enum index_state state = state_of(word);
		bool is_empty = state == INDEX_FREE || state == INDEX_VACANT;

		if (claim_stands(search, word)) {
			*ret_word = word;
			return step;
		}
		if (chosen == CELL_TABLE_SIZE && (with_idle ?
				slot_is_idle(table, slot, word, search->now_ns) : is_empty)) {
			*ret_word = word;
			chosen = step;
		}
		if (state == INDEX_FREE)
			break;
	}
	return chosen;
}

/* So that a target without a cell costs one search, not a look at every cell, on each connect. */
static bool table_is_full(struct cell_table *table, uint64_t now_ns)
{
	uint64_t until_ns = atomic_load_explicit(&table->full_until_ns,
			memory_order_relaxed);

	return until_ns > now_ns && until_ns - now_ns <= FULL_NS;
}

static uint32_t step_choose_any(const struct search *search, uint64_t *ret_word)
{
	struct cell_table *table = search->table;
	uint32_t step = step_choose(search, false, ret_word);

	if (step != CELL_TABLE_SIZE || table_is_full(table, search->now_ns))
		return step;
	step = step_choose(search, true, ret_word);
	if (step == CELL_TABLE_SIZE)
		atomic_store_explicit(&table->full_until_ns, search->now_ns + FULL_NS,
				memory_order_relaxed);
	return step;
}

static struct cell *claim_make(const struct search *search, uint32_t step, uint64_t was)
{
	uint32_t slot = probe(search->hash, step);
	uint64_t claimed;

	if (!slot_claim(search, slot, was, &claimed))
		return NULL;
	epoch_renew(search, slot, was, claimed);
	return claim_complete(search, step, claimed);
}

struct cell *cell_table_get(struct cell_table *table, const struct cell_key *key, uint64_t hash,
		uint64_t now_ns)
{
	struct search search = { table, key, hash, now_ns };
	struct cell *cell = cell_find(&search);

	for (int round = 0; round < MAX_ROUNDS && !cell; round++) {
		uint64_t word;
		uint32_t step = step_choose_any(&search, &word);

		if (step == CELL_TABLE_SIZE)
			break;
		cell = claim_stands(&search, word) ? claim_complete(&search, step, word) :
						     claim_make(&search, step, word);
		if (!cell)
			cell = cell_find(&search);
	}
	return cell;
}

bool cell_table_is(const struct cell_table *table, const struct cell *cell, uint64_t hash)
{
	uint32_t slot = cell_table_index(table, cell);

	if (slot >= CELL_TABLE_SIZE)
		return false;
	return (atomic_load_explicit(&table->index[slot], memory_order_acquire) & ~TURN_MASK) ==
			word_make(INDEX_LIVE, 0, hash);
}

uint32_t cell_table_index(const struct cell_table *table, const struct cell *cell)
{
	uintptr_t offset = (uintptr_t)cell - (uintptr_t)table->cells;

	/* Anything before the cells becomes huge. */
	if (offset >= sizeof(table->cells) || offset % sizeof(*cell))
		return CELL_TABLE_SIZE;
	return (uint32_t)(offset / sizeof(*cell));
}

struct cell *cell_table_at(struct cell_table *table, uint32_t index)
{
	if (index >= CELL_TABLE_SIZE || state_of(atomic_load_explicit(&table->index[index],
		memory_order_acquire)) != INDEX_LIVE)
		return NULL;
	return &table->cells[index];
}

bool cell_table_key(const struct cell_table *table, uint32_t index, struct cell_key *ret)
{
	uint64_t word;

	if (index >= CELL_TABLE_SIZE)
		return false;
	word = atomic_load_explicit(&table->index[index], memory_order_acquire);
	words_load(ret, &table->cells[index].key, sizeof(*ret));
	if (state_of(word) != INDEX_LIVE ||
			atomic_load_explicit(&table->index[index], memory_order_relaxed) != word)
		return false;
	words_text(ret->name, sizeof(ret->name));
	words_text(ret->host, sizeof(ret->host));
	if (ret->kind != CELL_LOOKUP)
		ret->kind = CELL_CONNECTION;
	if (ret->address.family != 4 && ret->address.family != 6)
		ret->address.family = 0;
	return true;
}
