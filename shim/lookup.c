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

/*
 * What this thread has open. The permit goes in last and comes out first, in one step: a signal
 * handler may look names up between any two instructions.
 */
struct lookup {
	_Atomic uint64_t permit; /* struct permit; zero: nothing is open */
	uint64_t began_ns;
	uint16_t rule_index;
	uint16_t cell_index;
};

static_assert(sizeof(struct lookup) <= 24, "thread-local storage of a preload is scarce");
static_assert(CONFIG_MAX_RULES <= UINT16_MAX && SEGMENT_CELLS <= UINT16_MAX, "indexes fit");

static _Thread_local struct lookup open_lookup;

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

static bool is_open(void)
{
	return atomic_load_explicit(&open_lookup.permit, memory_order_relaxed);
}

static struct permit permit_take(void)
{
	uint64_t word = atomic_exchange_explicit(&open_lookup.permit, 0, memory_order_acq_rel);
	struct permit permit;

	memcpy(&permit, &word, sizeof(permit));
	return permit;
}

static void permit_put(struct permit permit)
{
	uint64_t word;

	memcpy(&word, &permit, sizeof(word));
	atomic_store_explicit(&open_lookup.permit, word, memory_order_release);
}

static void report(enum outcome outcome, uint64_t now_ns)
{
	uint64_t duration_ns = clock_elapsed_ns(open_lookup.began_ns, now_ns);
	const struct rule *rule = &runtime.config.rules[open_lookup.rule_index];
	struct cell *cell = segment_cell_at(runtime.segment, open_lookup.cell_index);
	struct permit permit = permit_take();
	struct breaker breaker;

	if (permit.kind == PERMIT_NONE || !cell)
		return;
	breaker = runtime_breaker(rule, cell);
	follow(rule, &breaker, breaker_report(&breaker, permit, outcome, duration_ns, now_ns), false,
			now_ns);
}

static void settle_abandoned(void)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t duration_ns = clock_elapsed_ns(open_lookup.began_ns, now_ns);
	const struct rule *rule = &runtime.config.rules[open_lookup.rule_index];

	report(duration_ns >= rule->settings.abandon_ns ? OUTCOME_TIMEOUT : OUTCOME_CANCELLED,
			now_ns);
}

void lookup_settle_from(void *frame)
{
	if (is_open() && runtime_is_judging() && !inside_is(frame))
		settle_abandoned();
}

void lookup_forget(void)
{
	permit_take();
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
	open_lookup.began_ns = now_ns;
	open_lookup.rule_index = (uint16_t)(rule - runtime.config.rules);
	open_lookup.cell_index = (uint16_t)segment_cell_index(runtime.segment, cell);
	permit_put(permit);
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
	if (is_open())
		settle_abandoned();
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
	const struct rule *rule = &runtime.config.rules[open_lookup.rule_index];

	if (is_open())
		report(classify_lookup(&rule->settings, error, system_error), clock_now_ns());
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
static int eai_from_h_error(int h_error)
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
		return EAI_SYSTEM;
	}
}

void lookup_host_ended(const char *host, const struct hostent *entry, int h_error)
{
	int kept = errno;

	if (!runtime_is_judging())
		return;
	if (entry)
		learn_entry(host, entry);
	if (!entry && h_error == NETDB_INTERNAL && kept == ERANGE)
		report(OUTCOME_UNUSED, clock_now_ns());
	else
		end(entry ? 0 : eai_from_h_error(h_error), kept);
	errno = kept;
}
