/* SPDX-License-Identifier: MIT */
#include "shim/names.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "core/text.h"
#include "shim/reserve.h"

#define WAYS		4
#define NAME_SETS	512
#define PLACE_SETS	1024
#define NAMES_PER_PLACE 4
#define TEXT_WORDS	(HOST_SIZE / sizeof(uint64_t))
#define ADDRESS_WORDS	3
/* A writer that a signal handler left by longjmp, or that fork cut off, stays in the middle of its
 * entry for ever: nobody waits longer than this. */
#define MAX_TRIES 64

/*
 * Both tables work alike. `version` is odd while a writer is at work, and never the same twice; all
 * other words are stored with release and loaded with acquire, so that a reader that finds the
 * version unchanged has read one state, without a fence.
 */
struct stamp {
	_Atomic uint64_t version;
	_Atomic uint64_t used; /* tick of the last lookup; 0: never */
};

struct name {
	struct stamp stamp;
	_Atomic uint64_t hash;
	_Atomic uint64_t text[TEXT_WORDS];
};

/* An address, and the names it was resolved from: newest first, as references. A reference is the
 * upper 48 bits of the name's hash and 1 + its index: a reused slot is noticed by the hash. */
struct place {
	struct stamp stamp;
	_Atomic uint64_t address[ADDRESS_WORDS];
	_Atomic uint64_t names[NAMES_PER_PLACE];
};

static_assert(NAME_SETS * WAYS < 0xffff, "an index of a name has 16 bits");
static_assert(sizeof(struct address) <= ADDRESS_WORDS * sizeof(uint64_t), "an address fits");

struct tables {
	struct name names[NAME_SETS * WAYS];
	struct place places[PLACE_SETS * WAYS];
};

static struct tables *_Atomic tables;
static _Atomic uint64_t ticks;

/* Upper half of the hash of what this thread looked up last; 0: nothing. */
static _Thread_local uint32_t last_looked_up;

static uint64_t hash_of(const char *host)
{
	return text_hash(0, host, strlen(host));
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

static void touch(struct stamp *stamp)
{
	uint64_t tick = atomic_fetch_add_explicit(&ticks, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&stamp->used, tick, memory_order_relaxed);
}

/* True: the entry is the caller's until unlock(). */
static bool lock(struct stamp *stamp, uint64_t seen)
{
	return !(seen & 1) && atomic_compare_exchange_strong_explicit(&stamp->version, &seen,
					      seen + 1, memory_order_acquire, memory_order_relaxed);
}

static void unlock(struct stamp *stamp, uint64_t seen)
{
	touch(stamp);
	store(&stamp->version, seen + 2);
}

static bool is_locked(const struct stamp *stamp)
{
	return load(&stamp->version) & 1;
}

/* Should `candidate` make way before `other`? Never one that somebody is writing. */
static bool goes_before(const struct stamp *candidate, const struct stamp *other)
{
	if (is_locked(candidate))
		return false;
	return is_locked(other) || load(&candidate->used) < load(&other->used);
}

static uint64_t reference_make(uint64_t hash, size_t index)
{
	return (hash & ~0xffffull) | (index + 1);
}

static void name_write(struct name *name, uint64_t hash, const char *host)
{
	uint64_t words[TEXT_WORDS] = { 0 };

	text_copy((char *)words, sizeof(words), host);
	store(&name->hash, hash);
	for (size_t i = 0; i < TEXT_WORDS; i++)
		store(&name->text[i], words[i]);
}

/* A reference to that name, stored if it was not; 0 where others are at work in its set. */
static uint64_t name_put(struct name name_table[], const char *host)
{
	uint64_t hash = hash_of(host), seen;
	size_t first = (hash >> 16) % NAME_SETS * WAYS, oldest = first;

	for (size_t i = first; i < first + WAYS; i++) {
		if (load(&name_table[i].hash) == hash) {
			touch(&name_table[i].stamp);
			return reference_make(hash, i);
		}
		if (goes_before(&name_table[i].stamp, &name_table[oldest].stamp))
			oldest = i;
	}
	seen = load(&name_table[oldest].stamp.version);
	if (!lock(&name_table[oldest].stamp, seen))
		return 0;
	name_write(&name_table[oldest], hash, host);
	unlock(&name_table[oldest].stamp, seen);
	return reference_make(hash, oldest);
}

static bool has_terminator(uint64_t word)
{
	/* The lowest zero byte borrows. */
	return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

/* Up to the end of the name; true where it had one. */
static bool text_read(const struct name *name, uint64_t ret_words[TEXT_WORDS])
{
	for (size_t i = 0; i < TEXT_WORDS; i++) {
		ret_words[i] = load(&name->text[i]);
		if (has_terminator(ret_words[i]))
			return true;
	}
	return false;
}

/* Copies the text; false where the slot holds another name by now. */
static bool name_get(const struct name name_table[], uint64_t reference, char *ret)
{
	const struct name *name;
	uint64_t words[TEXT_WORDS], seen;
	bool is_whole;

	if (!reference)
		return false;
	name = &name_table[(reference & 0xffff) - 1];
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		seen = load(&name->stamp.version);
		if ((load(&name->hash) ^ reference) >> 16)
			return false;
		is_whole = text_read(name, words);
		if (is_whole && !(seen & 1) && load(&name->stamp.version) == seen) {
			text_copy(ret, HOST_SIZE, (const char *)words);
			return true;
		}
	}
	return false;
}

struct place_key {
	uint64_t words[ADDRESS_WORDS];
	struct place *ways;
};

static struct place_key place_key_of(struct place place_table[], const struct address *address)
{
	struct place_key key = { .ways = NULL };
	uint64_t hash;

	memcpy(key.words, address, sizeof(*address));
	/* Any odd constants: the upper bits of the product depend on all of the address. */
	hash = (key.words[0] ^ key.words[1] * 0x9e3779b97f4a7c15u ^ key.words[2]) *
	       0xbf58476d1ce4e5b9u;
	key.ways = &place_table[(hash >> 32) % PLACE_SETS * WAYS];
	return key;
}

static bool place_is(const struct place *place, const struct place_key *key)
{
	for (size_t i = 0; i < ADDRESS_WORDS; i++) {
		if (load(&place->address[i]) != key->words[i])
			return false;
	}
	return true;
}

/* The names of an address, if this place is that address's. */
static bool place_read(const struct place *place, const struct place_key *key,
		uint64_t ret_names[NAMES_PER_PLACE])
{
	uint64_t seen;

	for (int tries = 0; tries < MAX_TRIES; tries++) {
		seen = load(&place->stamp.version);
		if (!place_is(place, key)) {
			/* Half written, it may be about to become this address. */
			if (!(seen & 1) && load(&place->stamp.version) == seen)
				return false;
			continue;
		}
		for (size_t i = 0; i < NAMES_PER_PLACE; i++)
			ret_names[i] = load(&place->names[i]);
		if (!(seen & 1) && load(&place->stamp.version) == seen)
			return true;
	}
	return false;
}

/* Puts a name in front; the caller has the lock. */
static void place_add(struct place *place, uint64_t reference)
{
	uint64_t carried = reference, next;

	for (size_t i = 0; i < NAMES_PER_PLACE; i++) {
		next = load(&place->names[i]);
		store(&place->names[i], carried);
		if (next == reference)
			break;
		carried = next;
	}
}

static void place_write(struct place *place, const struct place_key *key, uint64_t reference)
{
	for (size_t i = 0; i < ADDRESS_WORDS; i++)
		store(&place->address[i], key->words[i]);
	store(&place->names[0], reference);
	for (size_t i = 1; i < NAMES_PER_PLACE; i++)
		store(&place->names[i], 0);
}

/* The place of an address, or NULL and the one that would have to make way for it. */
static struct place *place_for(const struct place_key *key, struct place **ret_oldest)
{
	*ret_oldest = key->ways;
	for (struct place *way = key->ways; way < key->ways + WAYS; way++) {
		if (place_is(way, key))
			return way;
		if (goes_before(&way->stamp, &(*ret_oldest)->stamp))
			*ret_oldest = way;
	}
	return NULL;
}

/* False: another writer was faster, look again. */
static bool place_learn(const struct place_key *key, uint64_t reference)
{
	struct place *oldest, *place = place_for(key, &oldest);
	uint64_t seen;

	if (place && load(&place->names[0]) == reference && place_is(place, key)) {
		touch(&place->stamp);
		return true;
	}
	if (!place)
		place = oldest;
	seen = load(&place->stamp.version);
	if (!lock(&place->stamp, seen))
		return false;
	/* Whose place it is may have changed until it was locked. */
	if (place_is(place, key))
		place_add(place, reference);
	else
		place_write(place, key, reference);
	unlock(&place->stamp, seen);
	return true;
}

bool names_start(void)
{
	struct tables *none = NULL, *made;

	if (atomic_load_explicit(&tables, memory_order_relaxed))
		return true;
	made = reserve(sizeof(*made));
	/* release: whoever finds them finds them zero. */
	if (made && !atomic_compare_exchange_strong_explicit(&tables, &none, made,
				    memory_order_release, memory_order_relaxed))
		munmap(made, sizeof(*made));
	return made;
}

void names_looked_up(const char *host)
{
	last_looked_up = (uint32_t)(hash_of(host) >> 32);
}

void names_learn(const char *host, const struct address *address, bool is_ruled)
{
	struct tables *known = atomic_load_explicit(&tables, memory_order_acquire);
	struct place *oldest;
	struct place_key key;
	uint64_t reference;

	if (!known)
		return;
	key = place_key_of(known->places, address);
	if (!is_ruled && !place_for(&key, &oldest))
		return;
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		reference = name_put(known->names, host);
		if (reference && place_learn(&key, reference))
			return;
	}
}

bool names_find(const struct address *address, char *ret)
{
	struct tables *known = atomic_load_explicit(&tables, memory_order_acquire);
	uint64_t names[NAMES_PER_PLACE], newest = 0, newest_used = 0, used;
	struct place_key key;

	ret[0] = '\0';
	if (!known)
		return false;
	key = place_key_of(known->places, address);
	/* All ways are looked at: two writers at once may have taken two for one address. */
	for (struct place *way = key.ways; way < key.ways + WAYS; way++) {
		used = load(&way->stamp.used);
		if (!used || !place_read(way, &key, names))
			continue;
		for (size_t i = 0; i < NAMES_PER_PLACE; i++) {
			if (names[i] && names[i] >> 32 == last_looked_up &&
					name_get(known->names, names[i], ret))
				return true;
		}
		if (used > newest_used) {
			newest = names[0];
			newest_used = used;
		}
	}
	return name_get(known->names, newest, ret);
}
