/* SPDX-License-Identifier: MIT */
#include "shim/open_lookup.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "core/segment.h"
#include "shim/resolver.h"
#include "shim/runtime.h"
#include "shim/timer.h"

#define LOOKUPS_MAX 256

/*
 * The open lookups of all threads, so that exit can settle them. A thread claims a slot by putting
 * its ticket there; the permit goes in last and comes out first, in one step, whoever ends the
 * lookup.
 */
struct lookup {
	_Atomic uint64_t permit; /* struct permit; zero: nothing is open */
	_Atomic uint64_t began_ns;
	_Atomic uint32_t ticket; /* zero: free */
	_Atomic uint16_t rule_index;
	_Atomic uint16_t cell_index;
};

static_assert(CONFIG_MAX_RULES <= UINT16_MAX && SEGMENT_CELLS <= UINT16_MAX &&
		LOOKUPS_MAX <= UINT8_MAX + 1, "indexes fit");

static struct lookup lookups[LOOKUPS_MAX];
static _Atomic uint32_t last_ticket;

/* Which of them is this thread's: its ticket there, or zero. */
static _Thread_local struct {
	uint32_t ticket;
	uint8_t index;
} mine;

static struct {
	pthread_key_t key;
	bool is_there;
} thread_end;

static void thread_ends(void *nothing)
{
	(void)nothing;
	if (runtime_is_judging())
		open_lookup_leave();
}

void open_lookup_start(void)
{
	thread_end.is_there = !pthread_key_create(&thread_end.key, thread_ends);
}

static struct permit permit_take(struct lookup *lookup)
{
	/* acq_rel: who takes it sees what the lookup was opened with. */
	uint64_t word = atomic_exchange_explicit(&lookup->permit, 0, memory_order_acq_rel);
	struct permit permit;

	memcpy(&permit, &word, sizeof(permit));
	return permit;
}

static void permit_put(struct lookup *lookup, struct permit permit)
{
	uint64_t word;

	memcpy(&word, &permit, sizeof(word));
	atomic_store_explicit(&lookup->permit, word, memory_order_release);
}

static uint64_t began_ns(const struct lookup *lookup)
{
	return atomic_load_explicit(&lookup->began_ns, memory_order_relaxed);
}

static const struct rule *rule_of(const struct lookup *lookup)
{
	return &runtime.config.rules[atomic_load_explicit(
			&lookup->rule_index, memory_order_relaxed)];
}

static void report(struct lookup *lookup, enum outcome outcome, uint64_t now_ns)
{
	const struct rule *rule = rule_of(lookup);
	struct cell *cell = segment_cell_at(runtime.segment,
			atomic_load_explicit(&lookup->cell_index, memory_order_relaxed));
	uint64_t duration_ns = clock_elapsed_ns(began_ns(lookup), now_ns);
	struct permit permit = permit_take(lookup);
	struct breaker breaker;
	enum transition transition;

	if (permit.kind == PERMIT_NONE || !cell)
		return;
	breaker = runtime_breaker(rule, cell);
	transition = breaker_report(&breaker, permit, outcome, duration_ns, now_ns);
	runtime_announce(&breaker, transition);
	if (transition == TRANSITION_TRIPPED || transition == TRANSITION_REOPENED)
		timer_watch_open(rule, &breaker, now_ns);
}

/* Nobody will say how it ended. */
static void report_left(struct lookup *lookup, uint64_t now_ns)
{
	uint64_t duration_ns = clock_elapsed_ns(began_ns(lookup), now_ns);

	report(lookup,
			duration_ns >= rule_of(lookup)->settings.abandon_ns ? OUTCOME_TIMEOUT
									    : OUTCOME_CANCELLED,
			now_ns);
}

/* A free slot, or the oldest one, whose lookup ends with that: its thread is long gone. */
static struct lookup *lookup_claim(uint32_t ticket, uint64_t now_ns)
{
	struct lookup *oldest = &lookups[0];
	uint32_t seen;

	for (uint32_t i = 0; i < LOOKUPS_MAX; i++) {
		struct lookup *lookup = &lookups[(ticket + i) % LOOKUPS_MAX];

		seen = 0;
		if (atomic_compare_exchange_strong_explicit(&lookup->ticket, &seen, ticket,
				    memory_order_acquire, memory_order_relaxed))
			return lookup;
		if (began_ns(lookup) < began_ns(oldest))
			oldest = lookup;
	}
	seen = atomic_load_explicit(&oldest->ticket, memory_order_relaxed);
	if (!atomic_compare_exchange_strong_explicit(&oldest->ticket, &seen, ticket,
			    memory_order_acquire, memory_order_relaxed))
		return NULL;
	report_left(oldest, now_ns);
	return oldest;
}

bool open_lookup_begin(const struct rule *rule, const struct cell *cell, struct permit permit,
		uint64_t now_ns)
{
	uint32_t ticket = 1 + atomic_fetch_add_explicit(&last_ticket, 1, memory_order_relaxed);
	struct lookup *lookup = ticket ? lookup_claim(ticket, now_ns) : NULL;

	if (!lookup)
		return false;
	atomic_store_explicit(&lookup->began_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&lookup->rule_index, (uint16_t)(rule - runtime.config.rules),
			memory_order_relaxed);
	atomic_store_explicit(&lookup->cell_index,
			(uint16_t)segment_cell_index(runtime.segment, cell), memory_order_relaxed);
	mine.index = (uint8_t)(lookup - lookups);
	mine.ticket = ticket;
	/* The keys beyond the first few allocate; so does the lookup that follows. */
	if (thread_end.is_there)
		pthread_setspecific(thread_end.key, &mine);
	permit_put(lookup, permit);
	return true;
}

/* What this thread has open, or NULL. */
static struct lookup *lookup_mine(void)
{
	struct lookup *lookup = &lookups[mine.index];

	return mine.ticket && atomic_load_explicit(&lookup->ticket, memory_order_relaxed) ==
							       mine.ticket
			       ? lookup
			       : NULL;
}

/* Its outcome has been reported. */
static void lookup_free(struct lookup *lookup)
{
	uint32_t ticket = mine.ticket;

	mine.ticket = 0;
	atomic_compare_exchange_strong_explicit(
			&lookup->ticket, &ticket, 0, memory_order_release, memory_order_relaxed);
}

const struct rule *open_lookup_rule(void)
{
	const struct lookup *lookup = lookup_mine();

	return lookup ? rule_of(lookup) : NULL;
}

void open_lookup_end(enum outcome outcome)
{
	struct lookup *lookup = lookup_mine();

	if (!lookup)
		return;
	report(lookup, outcome, clock_now_ns());
	lookup_free(lookup);
}

struct permit open_lookup_take(void)
{
	struct lookup *lookup = lookup_mine();
	struct permit permit = { .kind = PERMIT_NONE };

	if (!lookup)
		return permit;
	permit = permit_take(lookup);
	lookup_free(lookup);
	return permit;
}

uint64_t open_lookup_age_ns(void)
{
	const struct lookup *lookup = lookup_mine();

	return lookup ? clock_elapsed_ns(began_ns(lookup), clock_now_ns()) : 0;
}

/* Out of line: every connect asks, and hardly any has one to leave. */
__attribute__((noinline)) void open_lookup_leave(void)
{
	struct lookup *lookup = lookup_mine();

	resolver_leave();
	if (!lookup)
		return;
	report_left(lookup, clock_now_ns());
	lookup_free(lookup);
}

void open_lookup_leave_all(void)
{
	for (size_t i = 0; i < LOOKUPS_MAX; i++) {
		if (atomic_load_explicit(&lookups[i].permit, memory_order_acquire))
			report_left(&lookups[i], clock_now_ns());
	}
}

void open_lookup_forget(void)
{
	for (size_t i = 0; i < LOOKUPS_MAX; i++) {
		permit_take(&lookups[i]);
		atomic_store_explicit(&lookups[i].ticket, 0, memory_order_relaxed);
	}
	mine.ticket = 0;
}
