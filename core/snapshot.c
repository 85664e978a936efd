/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"

#include <stdatomic.h>
#include <string.h>

#include "core/bulkhead.h"
#include "core/text.h"

#define MAX_SLEEP_MS SETTINGS_MAX_MS

/* What a rule could have asked for; zero stays nothing. */
static struct window_shape shape_of(const struct cell_key *key)
{
	struct window_shape shape = {
		.span_ns = key->window_span_ns,
		.buckets = key->window_buckets,
		.calls = key->window_calls,
	};

	if (shape.calls > WINDOW_MAX_CALLS)
		shape.calls = WINDOW_MAX_CALLS;
	if (shape.buckets > WINDOW_MAX_BUCKETS)
		shape.buckets = WINDOW_MAX_BUCKETS;
	if (!shape.buckets)
		shape.buckets = 1;
	if (!shape.span_ns)
		shape.span_ns = shape.buckets;
	return shape;
}

static enum force force_in(const _Atomic uint32_t *word)
{
	uint32_t force = atomic_load_explicit(word, memory_order_relaxed);

	return force == FORCE_OPEN || force == FORCE_CLOSED ? (enum force)force : FORCE_NONE;
}

/* By hand beats by rule. */
static enum force force_of(const struct cell *cell)
{
	enum force by_hand = force_in(&cell->override.force);

	return by_hand != FORCE_NONE ? by_hand : force_in(&cell->override.by_rule);
}

static void state_take(const struct cell *cell, uint64_t now_ns, struct cell_snapshot *ret)
{
	struct circuit_view circuit = circuit_read(&cell->circuit);
	uint32_t sleep_ms = atomic_load_explicit(&cell->sleep_ms, memory_order_relaxed);
	uint32_t elapsed_ms = circuit_elapsed_ms(circuit.time_ms, (uint32_t)(now_ns / 1000000));

	ret->force = force_of(cell);
	ret->state = circuit.state;
	if (ret->force != FORCE_NONE) {
		ret->state = ret->force == FORCE_OPEN ? CIRCUIT_OPEN : CIRCUIT_CLOSED;
		return;
	}
	if (circuit.state != CIRCUIT_OPEN)
		return;
	if (sleep_ms > MAX_SLEEP_MS)
		sleep_ms = MAX_SLEEP_MS;
	ret->has_retry = true;
	ret->retry_in_ms = elapsed_ms < sleep_ms ? sleep_ms - elapsed_ms : 0;
}

static void window_take(const struct cell *cell, uint64_t now_ns, struct cell_snapshot *ret)
{
	struct window_shape shape = shape_of(&ret->key);
	struct window_sum sum = window_sum(&cell->outcomes, &shape,
			circuit_read(&cell->circuit).epoch, now_ns);

	ret->requests = sum.total;
	ret->errors = sum.errors < sum.total ? sum.errors : sum.total;
	if (sum.total)
		ret->error_percent = (uint32_t)((double)ret->errors * 100 / (double)sum.total);
}

/* What rules that limit `concurrency` know of; others hold no places. */
static uint64_t in_flight(struct segment *segment, const struct cell_key *key)
{
	struct holder reader = { .places = &segment->places, .seats = &segment->seats };
	struct bulkhead calls = bulkhead_of(&reader, cell_key_hash(key), BULKHEAD_CALLS);

	return bulkhead_in_flight(&calls);
}

uint32_t snapshot_reclaim(struct segment *segment, seat_is_alive *is_alive)
{
	uint32_t freed = 0;

	for (uint32_t i = 0; i < PLACE_BLOCKS; i++)
		freed += place_reclaim(&segment->places.blocks[i], &segment->seats, is_alive);
	return freed;
}

bool snapshot_take(struct segment *segment, uint32_t index, uint64_t now_ns,
		struct cell_snapshot *ret)
{
	struct cell_snapshot snapshot = { .in_flight = 0 };
	const struct cell *cell = segment_cell_at(segment, index);

	if (!cell || !cell_table_key(&segment->table, index, &snapshot.key))
		return false;
	state_take(cell, now_ns, &snapshot);
	window_take(cell, now_ns, &snapshot);
	for (uint32_t i = 0; i < CELL_TOTAL_COUNT; i++)
		snapshot.totals[i] = atomic_load_explicit(&cell->totals[i], memory_order_relaxed);
	snapshot.concurrency = atomic_load_explicit(&cell->concurrency, memory_order_relaxed);
	snapshot.in_flight = in_flight(segment, &snapshot.key);
	snapshot.latency = histogram_summarize(&cell->latency);
	*ret = snapshot;
	return true;
}

void snapshot_target(const struct cell_snapshot *snapshot, char *ret, size_t size)
{
	const struct cell_key *key = &snapshot->key;
	char address[64];
	const char *host = key->host;

	if (!*host && key->address.family)
		host = address_format(&key->address, address);
	if (!*host)
		host = "any";
	if (!key->port)
		text_copy(ret, size, host);
	else
		text_format(ret, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
				(unsigned int)key->port);
}
