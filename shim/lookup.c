/* SPDX-License-Identifier: MIT */
#include "shim/lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "core/breaker.h"
#include "core/clock.h"
#include "shim/call.h"
#include "shim/classify.h"
#include "shim/endpoint.h"
#include "shim/fault_rules.h"
#include "shim/inside.h"
#include "shim/names.h"
#include "shim/open_lookup.h"
#include "shim/runtime.h"
#include "shim/timer.h"

/* Beside the EAI_ values: the program's buffer was too small, it will ask again. */
#define LOOKUP_UNUSED 1

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

void lookup_settle_from(void *frame)
{
	if (runtime_is_judging() && open_lookup_rule() && !inside_is(frame))
		open_lookup_leave();
}

void lookup_settle_all(void)
{
	if (runtime_is_judging())
		open_lookup_leave_all();
}

void lookup_forget(void)
{
	open_lookup_forget();
}

static bool acquire(const struct rule *rule, struct cell *cell)
{
	struct breaker breaker = runtime_breaker(rule, cell);
	uint64_t now_ns = clock_now_ns();
	struct permit permit;

	if (!call_acquire(rule, cell, now_ns, &permit)) {
		timer_watch_open(rule, &breaker, now_ns);
		return runtime.observe;
	}
	if (!open_lookup_begin(rule, cell, permit, now_ns))
		breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
	return true;
}

struct lookup lookup_find(const char *host)
{
	struct lookup lookup = { .host = host };
	char name[HOST_SIZE];
	struct endpoint endpoint = { .host = name, .is_lookup = true };

	if (!runtime_is_judging())
		return lookup;
	/* The hook is not inside a resolver call, so what is open was left open. */
	open_lookup_leave();
	if (!host || lookup_is_numeric(host) || !host_normalize(host, name))
		return lookup;
	lookup.rule = config_match(&runtime.config, &endpoint);
	if (!lookup.rule)
		return lookup;
	runtime_matched(lookup.rule);
	lookup.cell = runtime_cell(lookup.rule, CELL_LOOKUP, &endpoint, clock_coarse_ns(), NULL);
	return lookup;
}

bool lookup_is_aided(const struct lookup *lookup)
{
	const struct settings *settings;

	if (!lookup->cell || runtime.observe)
		return false;
	settings = &lookup->rule->settings;
	return settings->enabled && (settings->resolve_timeout_ns || settings->resolve_cache_ns ||
						    settings->resolve_stale_ns);
}

bool lookup_begin(const struct lookup *lookup)
{
	return !lookup->cell || acquire(lookup->rule, lookup->cell);
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
	return fault_rules_want_name(name);
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
		address = entry->h_addrtype == AF_INET6 ? address_from_v6(*at)
							: address_from_v4(*at);
		names_learn(name, &address, ruled);
	}
}

/* Where the rule only watches, nothing ends a lookup that takes too long. */
static bool is_observed_late(const struct settings *settings)
{
	return runtime.observe && settings->resolve_timeout_ns &&
	       open_lookup_age_ns() >= settings->resolve_timeout_ns;
}

static enum outcome end(const struct lookup *lookup, int error, int system_error)
{
	const struct settings *settings;
	enum outcome outcome;

	if (!lookup->cell)
		return OUTCOME_NONE;
	settings = &lookup->rule->settings;
	if (error == LOOKUP_UNUSED)
		outcome = OUTCOME_UNUSED;
	else if (is_observed_late(settings))
		outcome = OUTCOME_TIMEOUT;
	else
		outcome = classify_lookup(settings, error, system_error);
	open_lookup_end(outcome);
	return outcome;
}

enum outcome lookup_ended(const struct lookup *lookup, int error, const struct addrinfo *list)
{
	int kept = errno;
	enum outcome outcome;

	if (!runtime_is_judging())
		return OUTCOME_NONE;
	if (!error)
		learn_list(lookup->host, list);
	outcome = end(lookup, error, kept);
	errno = kept;
	return outcome;
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

enum outcome lookup_host_ended(
		const struct lookup *lookup, const struct hostent *entry, int h_error)
{
	int kept = errno;
	enum outcome outcome;

	if (!runtime_is_judging())
		return OUTCOME_NONE;
	if (entry)
		learn_entry(lookup->host, entry);
	outcome = end(lookup, entry ? 0 : eai_from_h_error(h_error, kept), kept);
	errno = kept;
	return outcome;
}

void lookup_timed_out(const struct lookup *lookup)
{
	(void)lookup;
	open_lookup_end(OUTCOME_TIMEOUT);
}

/* A probe that a full pool turned away has not tried anything: its slot is free again. */
void lookup_rejected(const struct lookup *lookup)
{
	struct breaker breaker = runtime_breaker(lookup->rule, lookup->cell);
	uint64_t now_ns = clock_now_ns();
	struct permit permit = open_lookup_take();
	enum transition transition;

	if (permit.kind == PERMIT_PROBE)
		breaker_report(&breaker, permit, OUTCOME_UNUSED, 0, now_ns);
	transition = breaker_reject(&breaker, CELL_TOTAL_rejected_pool, now_ns);
	runtime_announce(&breaker, transition);
	if (transition == TRANSITION_TRIPPED)
		timer_watch_open(lookup->rule, &breaker, now_ns);
}

void lookup_cached(const struct lookup *lookup, const struct addrinfo *list)
{
	cell_count(lookup->cell, CELL_TOTAL_cached);
	learn_list(lookup->host, list);
}

void lookup_host_cached(const struct lookup *lookup, const struct hostent *entry)
{
	cell_count(lookup->cell, CELL_TOTAL_cached);
	learn_entry(lookup->host, entry);
}
