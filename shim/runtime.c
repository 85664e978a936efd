/* SPDX-License-Identifier: MIT */
#include "shim/runtime.h"

#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "shim/backtrace.h"
#include "shim/inside.h"
#include "shim/log.h"

struct runtime runtime;

/* Which cell an endpoint had last: tag of rule and endpoint above, index of the cell below. Only a
 * hint: the cell's own key is compared before use. */
#define HINT_COUNT 256
#define HINT_INDEX_BITS 16
static _Atomic uint64_t hints[HINT_COUNT];

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

void runtime_forked(void)
{
	runtime.pid = (uint32_t)getpid();
}

uint64_t runtime_random(void)
{
	uint64_t draw = atomic_fetch_add_explicit(&random_counter, 1, memory_order_relaxed);

	return mix(runtime.seed + (draw + 1) * 0x9e3779b97f4a7c15u);
}

struct breaker runtime_breaker(const struct rule *rule, struct cell *cell)
{
	return (struct breaker){
		.cell = cell,
		.settings = &rule->settings,
		.events = &runtime.segment->events,
		.pid = runtime.pid,
	};
}

/* What of an endpoint a cell is for, by the rule's `per`. */
struct place {
	char host[HOST_SIZE];
	struct address address;
	uint16_t port;
};

static void place_of(const struct rule *rule, enum cell_kind kind, const struct endpoint *endpoint,
		struct place *ret)
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
	if (kind == CELL_LOOKUP)
		return;
	ret->port = endpoint->port;
	if (rule->settings.per == PER_ADDRESS)
		ret->address = *endpoint->address;
}

static uint64_t place_hash(const struct rule *rule, enum cell_kind kind, const struct place *place)
{
	uint64_t halves[2];

	memcpy(halves, place->address.bytes, sizeof(halves));
	return mix(mix(mix(rule->hash ^ halves[0]) ^ halves[1]) ^ place->port ^ (uint64_t)kind << 16 ^
			(uint64_t)place->address.family << 24) ^
			text_hash(0, place->host, strlen(place->host));
}

static bool cell_is_for(const struct cell *cell, const struct rule *rule, enum cell_kind kind,
		const struct place *place)
{
	const struct cell_key *key = &cell->key;

	return key->port == place->port && key->kind == (uint8_t)kind &&
			!memcmp(&key->address, &place->address, sizeof(key->address)) &&
			key->window_span_ns == rule->settings.window.span_ns &&
			key->window_buckets == rule->settings.window.buckets &&
			key->window_calls == rule->settings.window.calls &&
			!strncmp(key->host, place->host, sizeof(key->host)) &&
			!strncmp(key->name, rule->name, sizeof(key->name));
}

struct cell *runtime_cell(const struct rule *rule, enum cell_kind kind,
		const struct endpoint *endpoint, uint64_t now_ns)
{
	struct place place;
	struct cell_key key;
	struct cell *cell;
	_Atomic uint64_t *hint;
	uint64_t hash, seen;

	place_of(rule, kind, endpoint, &place);
	hash = place_hash(rule, kind, &place);
	hint = &hints[hash % HINT_COUNT];
	seen = atomic_load_explicit(hint, memory_order_relaxed);
	if (seen >> HINT_INDEX_BITS == hash >> HINT_INDEX_BITS) {
		cell = segment_cell_at(runtime.segment, seen & ((1u << HINT_INDEX_BITS) - 1));
		if (cell && cell_is_for(cell, rule, kind, &place))
			return cell;
	}
	cell_key_make(&key, kind, rule->name, place.host, &place.address, place.port,
			&rule->settings.window);
	cell = segment_cell(runtime.segment, &key, cell_key_hash(&key), now_ns);
	if (cell)
		atomic_store_explicit(hint, hash >> HINT_INDEX_BITS << HINT_INDEX_BITS |
				segment_cell_index(runtime.segment, cell), memory_order_relaxed);
	return cell;
}

void runtime_matched(const struct rule *rule)
{
	struct segment_rule *record = runtime.rule_records[rule - runtime.config.rules];

	if (record)
		atomic_fetch_add_explicit(&record->matched, 1, memory_order_relaxed);
}

/* Whatever the segment holds: terminated, and shortened if need be. */
static void cell_describe(const struct cell *cell, char *ret, size_t size)
{
	char host[HOST_SIZE], address[46] = "";

	text_copy(host, sizeof(host), cell->key.host);
	if (cell->key.kind == CELL_LOOKUP) {
		text_format(ret, size, "lookup of %s", host);
		return;
	}
	if (cell->key.address.family)
		address_format(&cell->key.address, address);
	if (!strcmp(address, host))
		address[0] = '\0';
	text_format(ret, size, "%s%s%s port %u", host, address[0] ? " " : "", address,
			cell->key.port);
}

void runtime_announce(const struct breaker *breaker, enum transition transition)
{
	static const char *const said[] = {
		[TRANSITION_TRIPPED] = "open",
		[TRANSITION_HALF_OPENED] = "half-open",
		[TRANSITION_REOPENED] = "open again: the probe failed",
		[TRANSITION_CLOSED] = "closed",
	};
	char name[CELL_NAME_SIZE], target[HOST_SIZE + 64];

	if (transition == TRANSITION_NONE)
		return;
	text_copy(name, sizeof(name), breaker->cell->key.name);
	cell_describe(breaker->cell, target, sizeof(target));
	log_line("%s: %s: %s", name, target, said[transition]);
	if (transition == TRANSITION_TRIPPED)
		backtrace_log();
}
