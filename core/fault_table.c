/* SPDX-License-Identifier: MIT */
/*
 * The states of a record's key, and how it is that one rule has one record, are those of a cell's
 * word in core/cell_table.c:
 *
 *   FREE -> CLAIMING -> LIVE -> CLAIMING (for another rule) -> ...
 *              \-> VACANT -> CLAIMING
 */
#include "core/fault_table.h"

#include <string.h>

#include "core/text.h"
#include "core/words.h"

enum record_state { RECORD_FREE, RECORD_CLAIMING, RECORD_LIVE, RECORD_VACANT };

#define STATE_SHIFT 62
#define TURN_ONE (1ull << 48)
#define TURN_MASK (0x3fffull << 48)
#define HASH_MASK (TURN_ONE - 1)

/* Of rules added by hand, which no run has. */
#define RUN_ADDED UINT64_MAX
#define MAX_ROUNDS 32

/* A rule on its way to its record. */
struct search {
	struct fault_table *table;
	uint64_t hash, now_ns, ends_ns;
	char name[RULE_NAME_SIZE], text[FAULT_TEXT_SIZE];
};

static enum record_state state_of(uint64_t key)
{
	return (enum record_state)(key >> STATE_SHIFT);
}

static uint64_t key_make(enum record_state state, uint64_t turn_key, uint64_t hash)
{
	return (uint64_t)state << STATE_SHIFT | (turn_key & TURN_MASK) | (hash & HASH_MASK);
}

static bool key_is(uint64_t key, enum record_state state, uint64_t hash)
{
	return (key & ~TURN_MASK) == key_make(state, 0, hash);
}

static bool key_swap(struct fault_record *record, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(&record->key, &from, to,
		memory_order_seq_cst, memory_order_relaxed);
}

static uint64_t key_hash(const struct fault *fault, uint64_t run)
{
	const uint64_t key[] = { fault->hash, run };

	return words_hash(key, sizeof(key)) & HASH_MASK;
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* How readily a record becomes another rule's, the readiest first. What a rule did that has just
 * ended is still to be read. */
enum yield { YIELDS_OWN_CLAIM, YIELDS_EMPTY, YIELDS_FORGOTTEN, YIELDS_OVER, YIELDS_NOT };

static enum yield yield_of(const struct search *search, const struct fault_record *record,
		uint64_t key)
{
	enum record_state state = state_of(key);
	uint64_t now_ns = search->now_ns, ends_ns = load(&record->ends_ns);

	if (key_is(key, RECORD_CLAIMING, search->hash))
		return YIELDS_OWN_CLAIM;
	if (state == RECORD_FREE || state == RECORD_VACANT)
		return YIELDS_EMPTY;
	if (state == RECORD_LIVE && ends_ns && !fault_record_is_over(record, now_ns))
		return YIELDS_NOT;
	if (state == RECORD_LIVE && ends_ns)
		return now_ns - ends_ns > FAULT_FORGOTTEN_NS ? YIELDS_FORGOTTEN : YIELDS_OVER;
	return fault_record_is_forgotten(record, now_ns) ? YIELDS_FORGOTTEN : YIELDS_NOT;
}

static struct fault_record *find(const struct search *search)
{
	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		struct fault_record *record = &search->table->records[i];

		if (key_is(atomic_load_explicit(&record->key, memory_order_acquire), RECORD_LIVE,
			search->hash))
			return record;
	}
	return NULL;
}

/* An environment's rule yields where it was used before: so the one unused longest goes, and the
 * rules of one process, which are all used when it starts, take nothing from each other. */
static struct fault_record *unused_longest(const struct search *search, uint64_t *ret_key)
{
	struct fault_record *chosen = NULL;
	uint64_t oldest_ns = search->now_ns;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		struct fault_record *record = &search->table->records[i];
		uint64_t key = atomic_load_explicit(&record->key, memory_order_acquire);
		uint64_t used_ns = load(&record->used_ns);

		if (state_of(key) != RECORD_LIVE || load(&record->ends_ns) || used_ns >= oldest_ns)
			continue;
		chosen = record;
		oldest_ns = used_ns;
		*ret_key = key;
	}
	return chosen;
}

/* The first of those that yield most readily, else the one that was wanted least; NULL where there
 * is none. */
static struct fault_record *choose(const struct search *search, uint64_t *ret_key)
{
	struct fault_record *chosen = NULL;
	enum yield best = YIELDS_NOT;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		struct fault_record *record = &search->table->records[i];
		uint64_t key = atomic_load_explicit(&record->key, memory_order_acquire);
		enum yield yield = yield_of(search, record, key);

		if (yield >= best)
			continue;
		chosen = record;
		*ret_key = key;
		best = yield;
	}
	return chosen ? chosen : unused_longest(search, ret_key);
}

/* Is no other record this rule's, now that the claim shows? If not, the claim was given back. */
static bool claim_is_alone(const struct search *search, struct fault_record *own, uint64_t claimed)
{
	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		struct fault_record *record = &search->table->records[i];
		uint64_t key = atomic_load_explicit(&record->key, memory_order_seq_cst);
		bool is_claim = key_is(key, RECORD_CLAIMING, search->hash);

		if (record == own)
			continue;
		if (key_is(key, RECORD_LIVE, search->hash) || (is_claim && record < own)) {
			key_swap(own, claimed, key_make(RECORD_VACANT, claimed, 0));
			return false;
		}
		/* Ours is the earlier; but if the other is LIVE by now, it wins: look again. */
		if (is_claim && !key_swap(record, key, key_make(RECORD_VACANT, key, 0)))
			i--;
	}
	return true;
}

static bool store(const struct search *search, struct fault_record *record, uint64_t claimed)
{
	const _Atomic uint64_t *guard = &record->key;

	return words_store(&record->began_ns, &search->now_ns, 8, guard, claimed) &&
		words_store(&record->used_ns, &search->now_ns, 8, guard, claimed) &&
		words_store(&record->ends_ns, &search->ends_ns, 8, guard, claimed) &&
		fault_record_clear(record, claimed) &&
		words_store(record->name, search->name, sizeof(record->name), guard, claimed) &&
		words_store(record->text, search->text, sizeof(record->text), guard, claimed);
}

static bool claim(const struct search *search, struct fault_record *record, uint64_t was)
{
	uint64_t claimed = was;

	if (!key_is(was, RECORD_CLAIMING, search->hash)) {
		/* Before the claim, so that nobody takes a fresh claim for an abandoned one. */
		atomic_store_explicit(&record->used_ns, search->now_ns, memory_order_relaxed);
		claimed = key_make(RECORD_CLAIMING, was + TURN_ONE, search->hash);
		if (!key_swap(record, was, claimed))
			return false;
	}
	return claim_is_alone(search, record, claimed) && store(search, record, claimed) &&
			key_swap(record, claimed, key_make(RECORD_LIVE, claimed, search->hash));
}

static struct fault_record *get(const struct search *search)
{
	struct fault_record *record = find(search);

	for (int round = 0; round < MAX_ROUNDS && !record; round++) {
		uint64_t key;

		record = choose(search, &key);
		if (!record)
			break;
		if (!claim(search, record, key))
			record = find(search);
	}
	return record;
}

/* False where the text had to be shortened. */
static bool search_init(struct search *search, struct fault_table *table, const struct fault *fault,
		const char *text, uint64_t run, uint64_t now_ns)
{
	*search = (struct search){ table, key_hash(fault, run), now_ns, 0, "", "" };
	text_copy(search->name, sizeof(search->name), fault->name);
	return text[text_copy(search->text, sizeof(search->text), text)] == '\0';
}

struct fault_record *fault_table_claim(struct fault_table *table, const struct fault *fault,
		const char *text, uint64_t run, uint64_t now_ns)
{
	struct fault_record *record;
	struct search search;

	search_init(&search, table, fault, text, run, now_ns);
	record = get(&search);
	if (!record)
		return NULL;
	uint64_t used_ns = load(&record->used_ns);
	/* Of those that come at once, one wins the swap. */
	if (run == 0 && fault_record_is_forgotten(record, now_ns)) {
		if (atomic_compare_exchange_strong_explicit(&record->used_ns, &used_ns, now_ns,
			memory_order_relaxed, memory_order_relaxed))
			fault_record_begin_anew(record, now_ns);
	} else {
		atomic_store_explicit(&record->used_ns, now_ns, memory_order_relaxed);
	}
	return record;
}

/* Did it begin after `kept`? Of two that are added at once one must stay. */
static bool is_newer(const struct fault_record *record, const struct fault_record *kept)
{
	uint64_t began_ns = load(&record->began_ns), kept_ns = load(&kept->began_ns);

	return began_ns > kept_ns || (began_ns == kept_ns && record > kept);
}

/* Ends what was added by hand under that name, or all with NULL; but not `kept` and newer ones. */
static uint32_t end_added(struct fault_table *table, const char *name,
		const struct fault_record *kept, uint64_t now_ns)
{
	struct fault_view view;
	uint32_t count = 0;

	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		struct fault_record *record = &table->records[i];

		if (!fault_table_read(table, i, now_ns, &view) || !view.is_added || view.is_over)
			continue;
		if (kept && (record == kept || is_newer(record, kept)))
			continue;
		if (name && strcmp(view.name, name) != 0)
			continue;
		count += atomic_compare_exchange_strong_explicit(&record->ends_ns, &view.ends_ns,
			now_ns, memory_order_relaxed, memory_order_relaxed);
	}
	/* release: who sees it sees what has changed. */
	atomic_fetch_add_explicit(&table->generation, 1, memory_order_release);
	return count;
}

bool fault_table_add(struct fault_table *table, const struct fault *fault, const char *text,
		uint64_t ends_ns, uint64_t now_ns)
{
	struct fault_record *record;
	struct search search;

	if (!search_init(&search, table, fault, text, RUN_ADDED, now_ns))
		return false;
	search.ends_ns = ends_ns ? ends_ns : 1;
	record = get(&search);
	if (!record)
		return false;
	/* The same again: it may have been there, running or over. */
	if (load(&record->began_ns) != now_ns)
		fault_record_begin_anew(record, now_ns);
	atomic_store_explicit(&record->ends_ns, search.ends_ns, memory_order_relaxed);
	end_added(table, fault->name, record, now_ns);
	return true;
}

uint32_t fault_table_clear(struct fault_table *table, const char *name, uint64_t now_ns)
{
	return end_added(table, name, NULL, now_ns);
}

struct fault_record *fault_table_at(struct fault_table *table, uint32_t index, uint64_t key)
{
	if (index >= FAULT_TABLE_SIZE || state_of(key) != RECORD_LIVE ||
			atomic_load_explicit(&table->records[index].key,
				memory_order_acquire) != key)
		return NULL;
	return &table->records[index];
}

bool fault_table_read(const struct fault_table *table, uint32_t index, uint64_t now_ns,
		struct fault_view *ret)
{
	const struct fault_record *record;

	if (index >= FAULT_TABLE_SIZE)
		return false;
	record = &table->records[index];
	ret->key = atomic_load_explicit(&record->key, memory_order_acquire);
	if (state_of(ret->key) != RECORD_LIVE)
		return false;
	words_load(ret->name, record->name, sizeof(ret->name));
	words_load(ret->text, record->text, sizeof(ret->text));
	ret->began_ns = load(&record->began_ns);
	ret->ends_ns = load(&record->ends_ns);
	ret->connections = load(&record->connections);
	ret->counts = fault_record_counts(record);
	/* It may have been given to another rule meanwhile. */
	if (atomic_load_explicit(&record->key, memory_order_relaxed) != ret->key)
		return false;
	words_text(ret->name, sizeof(ret->name));
	words_text(ret->text, sizeof(ret->text));
	ret->is_added = ret->ends_ns != 0;
	ret->is_over = ret->is_added && ret->ends_ns <= now_ns;
	return true;
}
