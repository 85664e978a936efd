/* SPDX-License-Identifier: MIT */
#include "shim/runtime.h"

#include <pthread.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "shim/backtrace.h"
#include "shim/inside.h"
#include "shim/log.h"
#include "shim/own_call.h"

struct runtime runtime;

/* Which cell an endpoint had last: a hint, checked against the segment before use. `check` is the
 * endpoint's hash with the other two mixed in, so that halves of two racing writers never fit. */
struct hint {
	_Atomic uint64_t check, key_hash, index;
};

#define HINT_COUNT 256
#define OVERFLOW_SAID_NS 10000000000ull
static struct hint hints[HINT_COUNT];

static _Atomic uint64_t random_counter;

bool runtime_is_judging(void)
{
	return atomic_load_explicit(&runtime.is_active, memory_order_acquire) &&
			!process_is_vfork_child();
}

/* splitmix64's finalizer: spreads a counter over all bits. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

/* As libc notes it in every lock: no system call, which a filter might kill for. Right after fork
 * the process has this thread alone, and its number. */
static uint32_t thread_number(void)
{
	pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	int owner;

	pthread_mutex_lock(&mutex);
	owner = mutex.__data.__owner;
	pthread_mutex_unlock(&mutex);
	return (uint32_t)owner;
}

void runtime_forked(void)
{
	runtime.pid = thread_number();
	own_calls_forked();
}

void runtime_filter_begins(void)
{
	own_calls_forbid();
}

void runtime_filter_ended(bool is_set)
{
	static _Atomic bool is_counted;

	if (!is_set) {
		own_calls_allow();
	} else if (runtime.segment && !atomic_exchange_explicit(&is_counted, true,
					      memory_order_relaxed)) {
		atomic_fetch_add_explicit(&runtime.segment->header.filtered, 1,
				memory_order_relaxed);
	}
}

uint64_t runtime_random(const struct cell *cell)
{
	uint64_t draw = 1 + atomic_fetch_add_explicit(&random_counter, 1, memory_order_relaxed);

	for (size_t i = 0; i < CELL_TOTAL_COUNT; i++)
		draw += atomic_load_explicit(&cell->totals[i], memory_order_relaxed);
	return mix(runtime.seed + draw * 0x9e3779b97f4a7c15u);
}

/* What of an endpoint a cell is for, by the rule's `per`. */
struct scope {
	char host[HOST_SIZE];
	struct address address;
	uint16_t port;
};

static void scope_of(const struct rule *rule, enum cell_kind kind, const struct endpoint *endpoint,
		struct scope *ret)
{
	ret->host[0] = '\0';
	ret->address = (struct address){ 0 };
	ret->port = 0;
	if (rule->settings.per == PER_RULE)
		return;
	if (endpoint->host)
		text_copy(ret->host, sizeof(ret->host), endpoint->host);
	else
		address_format(endpoint->address, ret->host);
	if (kind == CELL_LOOKUP || rule->settings.per == PER_HOST)
		return;
	ret->port = endpoint->port;
	ret->address = *endpoint->address;
}

/* Of the same things as scope_of(), without making text of them. */
static uint64_t endpoint_hash(const struct rule *rule, enum cell_kind kind,
		const struct endpoint *endpoint)
{
	uint64_t hash = rule->hash ^ (uint64_t)kind << 32;
	uint64_t halves[2];

	if (rule->settings.per == PER_RULE)
		return mix(hash);
	if (endpoint->host)
		hash ^= text_hash(0, endpoint->host, strlen(endpoint->host));
	if (kind == CELL_LOOKUP || (endpoint->host && rule->settings.per == PER_HOST))
		return mix(hash);
	if (rule->settings.per == PER_ADDRESS)
		hash ^= endpoint->port;
	memcpy(halves, endpoint->address->bytes, sizeof(halves));
	return mix(mix(hash ^ halves[0]) ^ halves[1] ^ (uint64_t)endpoint->address->family << 32);
}

static struct cell *hint_read(struct hint *hint, uint64_t hash, uint64_t *ret_key_hash)
{
	uint64_t key_hash = atomic_load_explicit(&hint->key_hash, memory_order_relaxed);
	uint64_t index = atomic_load_explicit(&hint->index, memory_order_relaxed);
	struct cell *cell;

	if ((atomic_load_explicit(&hint->check, memory_order_relaxed) ^ key_hash ^ mix(index)) !=
			hash)
		return NULL;
	cell = segment_cell_at(runtime.segment, (uint32_t)index);
	if (!cell || !segment_cell_is(runtime.segment, cell, key_hash))
		return NULL;
	*ret_key_hash = key_hash;
	return cell;
}

static void hint_write(struct hint *hint, uint64_t hash, uint64_t key_hash, uint64_t index)
{
	atomic_store_explicit(&hint->key_hash, key_hash, memory_order_relaxed);
	atomic_store_explicit(&hint->index, index, memory_order_relaxed);
	atomic_store_explicit(&hint->check, hash ^ key_hash ^ mix(index), memory_order_relaxed);
}

/* All cells are taken: the target's calls pass unmetered. Said at most every ten seconds. */
static void announce_overflow(const struct cell_key *key, uint64_t now_ns)
{
	static _Atomic uint64_t said_ns;
	uint64_t said = atomic_load_explicit(&said_ns, memory_order_relaxed);
	struct event event = { .time_ns = now_ns, .kind = EVENT_OVERFLOW, .pid = runtime.pid,
		.is_lookup = key->kind == CELL_LOOKUP };

	if ((said && now_ns - said < OVERFLOW_SAID_NS) || !atomic_compare_exchange_strong_explicit(
			&said_ns, &said, now_ns, memory_order_relaxed, memory_order_relaxed))
		return;
	text_copy(event.name, sizeof(event.name), key->name);
	cell_key_describe(key, event.target, sizeof(event.target));
	event_write(&runtime.segment->events, &event);
	log_line("%s: %s: not guarded: all cells are taken", key->name, event.target);
}

struct cell *runtime_cell(const struct rule *rule, enum cell_kind kind,
		const struct endpoint *endpoint, uint64_t now_ns, uint64_t *ret_key_hash)
{
	uint64_t hash = endpoint_hash(rule, kind, endpoint);
	struct hint *hint = &hints[hash % HINT_COUNT];
	uint64_t key_hash;
	struct cell *cell = hint_read(hint, hash, &key_hash);
	struct scope place;
	struct cell_key key;

	if (!cell) {
		scope_of(rule, kind, endpoint, &place);
		cell_key_make(&key, kind, rule->name, place.host, &place.address, place.port,
				&rule->settings.window);
		key_hash = cell_key_hash(&key);
		cell = segment_cell(runtime.segment, &key, key_hash, now_ns);
		if (cell)
			hint_write(hint, hash, key_hash,
					segment_cell_index(runtime.segment, cell));
		else
			announce_overflow(&key, now_ns);
	}
	if (ret_key_hash)
		*ret_key_hash = key_hash;
	return cell;
}

void runtime_matched(const struct rule *rule)
{
	struct segment_rule *record = runtime.rule_records[rule - runtime.config.rules];

	if (record)
		atomic_fetch_add_explicit(&record->matched, 1, memory_order_relaxed);
}

void runtime_unenforced(const struct rule *rule, enum unenforced why)
{
	struct segment_rule *record = runtime.rule_records[rule - runtime.config.rules];

	if (record)
		atomic_fetch_add_explicit(&record->unenforced[why], 1, memory_order_relaxed);
}

/* "open: 20 of 38 calls failed, the next probe in 5000 ms". */
static void describe_trip(const struct breaker *breaker, char *ret, size_t size)
{
	struct window_sum sum = window_sum(&breaker->cell->outcomes, &breaker->settings->window,
			circuit_read(&breaker->cell->circuit).epoch, clock_now_ns());

	text_format(ret, size, "open: %llu of %llu calls failed, the next probe in %u ms",
			(unsigned long long)sum.errors, (unsigned long long)sum.total,
			breaker->settings->sleep_ms);
}

void runtime_announce(const struct breaker *breaker, enum transition transition)
{
	static const char *const said[] = {
		[TRANSITION_HALF_OPENED] = "half-open: a probe goes through",
		[TRANSITION_REOPENED] = "open again: the probe failed",
		[TRANSITION_CLOSED] = "closed",
	};
	char name[CELL_NAME_SIZE], target[HOST_SIZE], trip[96];

	if (transition == TRANSITION_NONE)
		return;
	if (transition == TRANSITION_TRIPPED)
		describe_trip(breaker, trip, sizeof(trip));
	text_copy(name, sizeof(name), breaker->cell->key.name);
	cell_key_describe(&breaker->cell->key, target, sizeof(target));
	log_line("%s: %s%s: %s%s", name, breaker->cell->key.kind == CELL_LOOKUP ? "lookup of " : "",
			target, transition == TRANSITION_TRIPPED ? trip : said[transition],
			runtime.observe ? " (observed)" : "");
	if (transition == TRANSITION_TRIPPED)
		backtrace_log();
}
