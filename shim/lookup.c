/* SPDX-License-Identifier: MIT */
#include "shim/lookup.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "core/segment.h"
#include "shim/classify.h"
#include "shim/endpoint.h"
#include "shim/inside.h"
#include "shim/names.h"
#include "shim/runtime.h"
#include "shim/timer.h"

#define LOOKUPS_MAX 256
/* Beside the EAI_ values: the program's buffer was too small, it will ask again. */
#define LOOKUP_UNUSED 1

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

static_assert(CONFIG_MAX_RULES <= UINT16_MAX && SEGMENT_CELLS <= UINT16_MAX, "indexes fit");

static struct lookup lookups[LOOKUPS_MAX];
static _Atomic uint32_t last_ticket;

/* Which of them is this thread's: its ticket there, or zero. */
static _Thread_local struct {
	uint32_t ticket;
	uint32_t index;
} mine;

static bool is_hex_digit(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* One part of an address in the forms of inet_aton(): decimal, octal or hexadecimal. */
static const char *skip_number(const char *text)
{
	const char *first = text;

	if (text[0] == '0' && (text[1] | 0x20) == 'x') {
		for (text += 2; is_hex_digit(*text); text++)
			;
		return text;
	}
	while (*text >= '0' && *text <= '9')
		text++;
	return text > first ? text : NULL;
}

bool lookup_is_numeric(const char *host)
{
	const char *at = host;

	/* No name has a colon. */
	if (!*host || strchr(host, ':'))
		return true;
	for (;;) {
		at = skip_number(at);
		if (!at)
			return false;
		if (!*at)
			return true;
		if (*at++ != '.')
			return false;
	}
}

/* Tells about a transition, and has an open circuit watched. */
static void follow(const struct rule *rule, const struct breaker *breaker,
		enum transition transition, bool is_refused, uint64_t now_ns)
{
	uint64_t due_ns;

	runtime_announce(breaker, transition);
	if (!is_refused && transition != TRANSITION_TRIPPED && transition != TRANSITION_REOPENED)
		return;
	due_ns = breaker_wake_time_ns(breaker, now_ns);
	if (due_ns)
		timer_watch(rule, breaker->cell, due_ns);
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
	return &runtime.config.rules[atomic_load_explicit(&lookup->rule_index,
			memory_order_relaxed)];
}

static void report(struct lookup *lookup, enum outcome outcome, uint64_t now_ns)
{
	const struct rule *rule = rule_of(lookup);
	struct cell *cell = segment_cell_at(runtime.segment, atomic_load_explicit(
			&lookup->cell_index, memory_order_relaxed));
	uint64_t duration_ns = clock_elapsed_ns(began_ns(lookup), now_ns);
	struct permit permit = permit_take(lookup);
	struct breaker breaker;

	if (permit.kind == PERMIT_NONE || !cell)
		return;
	breaker = runtime_breaker(rule, cell);
	follow(rule, &breaker, breaker_report(&breaker, permit, outcome, duration_ns, now_ns), false,
			now_ns);
}

/* Nobody will say how it ended. */
static void report_left(struct lookup *lookup, uint64_t now_ns)
{
	uint64_t duration_ns = clock_elapsed_ns(began_ns(lookup), now_ns);

	report(lookup, duration_ns >= rule_of(lookup)->settings.abandon_ns ? OUTCOME_TIMEOUT :
			OUTCOME_CANCELLED, now_ns);
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

/* False where no slot could be had. */
static bool lookup_open(const struct rule *rule, const struct cell *cell, struct permit permit,
		uint64_t now_ns)
{
	uint32_t ticket = 1 + atomic_fetch_add_explicit(&last_ticket, 1, memory_order_relaxed);
	struct lookup *lookup = ticket ? lookup_claim(ticket, now_ns) : NULL;

	if (!lookup)
		return false;
	atomic_store_explicit(&lookup->began_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&lookup->rule_index, (uint16_t)(rule - runtime.config.rules),
			memory_order_relaxed);
	atomic_store_explicit(&lookup->cell_index, (uint16_t)segment_cell_index(runtime.segment,
			cell), memory_order_relaxed);
	mine.index = (uint32_t)(lookup - lookups);
	mine.ticket = ticket;
	permit_put(lookup, permit);
	return true;
}

/* What this thread has open, or NULL. */
static struct lookup *lookup_mine(void)
{
	struct lookup *lookup = &lookups[mine.index];

	return mine.ticket && atomic_load_explicit(&lookup->ticket, memory_order_relaxed) ==
			mine.ticket ? lookup : NULL;
}

/* Its outcome has been reported. */
static void lookup_free(struct lookup *lookup)
{
	uint32_t ticket = mine.ticket;

	mine.ticket = 0;
	atomic_compare_exchange_strong_explicit(&lookup->ticket, &ticket, 0, memory_order_release,
			memory_order_relaxed);
}

static void settle_mine(void)
{
	struct lookup *lookup = lookup_mine();

	if (!lookup)
		return;
	report_left(lookup, clock_now_ns());
	lookup_free(lookup);
}

void lookup_settle_from(void *frame)
{
	if (mine.ticket && runtime_is_judging() && !inside_is(frame))
		settle_mine();
}

void lookup_settle_all(void)
{
	if (!runtime_is_judging())
		return;
	for (size_t i = 0; i < LOOKUPS_MAX; i++) {
		if (atomic_load_explicit(&lookups[i].permit, memory_order_acquire))
			report_left(&lookups[i], clock_now_ns());
	}
}

void lookup_forget(void)
{
	for (size_t i = 0; i < LOOKUPS_MAX; i++) {
		permit_take(&lookups[i]);
		atomic_store_explicit(&lookups[i].ticket, 0, memory_order_relaxed);
	}
	mine.ticket = 0;
}

static bool acquire(const struct rule *rule, struct cell *cell)
{
	struct breaker breaker = runtime_breaker(rule, cell);
	uint64_t now_ns = clock_now_ns();
	uint64_t random = rule->settings.probes_ratio ? runtime_random() : 0;
	struct permit permit;
	struct decision decision = breaker_acquire(&breaker, now_ns, random, &permit);

	follow(rule, &breaker, decision.transition, !decision.is_admitted, now_ns);
	if (!decision.is_admitted)
		return runtime.observe;
	if (!lookup_open(rule, cell, permit, now_ns))
		breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
	return true;
}

bool lookup_begin(const char *host)
{
	char name[HOST_SIZE];
	struct endpoint endpoint = { .host = name, .is_lookup = true };
	const struct rule *rule;
	struct cell *cell;

	if (!runtime_is_judging())
		return true;
	/* The hook is not inside a resolver call, so what is open was left open. */
	settle_mine();
	if (!host || lookup_is_numeric(host) || !host_normalize(host, name))
		return true;
	rule = config_match(&runtime.config, &endpoint);
	if (!rule)
		return true;
	runtime_matched(rule);
	cell = runtime_cell(rule, CELL_LOOKUP, &endpoint, clock_coarse_ns());
	return !cell || acquire(rule, cell);
}

/* Must this name be known when its address is connected to? */
static bool is_ruled(const char *name)
{
	struct endpoint endpoint = { .host = name, .is_lookup = true };

	for (size_t i = 0; i < runtime.config.rule_count; i++) {
		const struct target *target = &runtime.config.rules[i].target;

		if (target_wants_names(target) && target_matches(target, &endpoint))
			return true;
	}
	return false;
}

/* The name in the form that is learned; false where there is none to learn. */
static bool learns(const char *host, char *ret_name)
{
	if (!runtime.config.wants_names || !host || lookup_is_numeric(host) ||
			!host_normalize(host, ret_name))
		return false;
	names_looked_up(ret_name);
	return true;
}

static void learn_list(const char *host, const struct addrinfo *list)
{
	char name[HOST_SIZE];
	struct address address;
	uint16_t port;
	bool ruled;

	if (!learns(host, name))
		return;
	ruled = is_ruled(name);
	for (; list; list = list->ai_next) {
		if (endpoint_read(list->ai_addr, list->ai_addrlen, &address, &port))
			names_learn(name, &address, ruled);
	}
}

static void learn_entry(const char *host, const struct hostent *entry)
{
	char name[HOST_SIZE];
	struct address address;
	bool ruled;

	if (!learns(host, name))
		return;
	ruled = is_ruled(name);
	for (char **at = entry->h_addr_list; at && *at; at++) {
		address = entry->h_addrtype == AF_INET6 ? address_from_v6(*at) :
				address_from_v4(*at);
		names_learn(name, &address, ruled);
	}
}

static void end(int error, int system_error)
{
	struct lookup *lookup = lookup_mine();

	if (!lookup)
		return;
	report(lookup, error == LOOKUP_UNUSED ? OUTCOME_UNUSED : classify_lookup(
			&rule_of(lookup)->settings, error, system_error), clock_now_ns());
	lookup_free(lookup);
}

void lookup_ended(const char *host, int error, const struct addrinfo *list)
{
	int kept = errno;

	if (!runtime_is_judging())
		return;
	if (!error)
		learn_list(host, list);
	end(error, kept);
	errno = kept;
}

/* What getaddrinfo() would have said. */
static int eai_from_h_error(int h_error, int system_error)
{
	switch (h_error) {
	case HOST_NOT_FOUND:
		return EAI_NONAME;
	case TRY_AGAIN:
		return EAI_AGAIN;
	case NO_RECOVERY:
		return EAI_FAIL;
	case NO_DATA:
		return EAI_NODATA;
	default:
		return system_error == ERANGE ? LOOKUP_UNUSED : EAI_SYSTEM;
	}
}

void lookup_host_ended(const char *host, const struct hostent *entry, int h_error)
{
	int kept = errno;

	if (!runtime_is_judging())
		return;
	if (entry)
		learn_entry(host, entry);
	end(entry ? 0 : eai_from_h_error(h_error, kept), kept);
	errno = kept;
}
