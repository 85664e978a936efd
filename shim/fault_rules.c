/* SPDX-License-Identifier: MIT */
#include "shim/fault_rules.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/clock.h"
#include "core/fault_text.h"
#include "shim/endpoint.h"
#include "shim/log.h"
#include "shim/names.h"
#include "shim/own_call.h"
#include "shim/reserve.h"
#include "shim/thread.h"

/* In fault_rules.reading, whose time is a nanosecond off for it. */
#define READING_MAY_BE_LEFT 1ull
#define LEFT_NS		    10000000000ull

struct fault_rules fault_rules;

static const char *own_program;

/* A reader's; one at a time. */
static struct fault_view view;
static char error_text[CONFIG_PROBLEM_SIZE];

/* The next free place, or NULL. It counts when rule_publish() says so. */
static struct fault_rule *rule_next(void)
{
	uint32_t count = atomic_load_explicit(&fault_rules.count, memory_order_relaxed);

	return count < fault_rules.capacity ? &fault_rules.rules[count] : NULL;
}

/* Of what is connected to. */
static bool wants_names(const struct fault *fault)
{
	return !fault->is_lookup && target_wants_names(&fault->target);
}

/* Once a filter was seen, not if no rule wanted them before. */
static bool can_have_names(void)
{
	return runtime.config.wants_names ||
	       (!atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed) &&
			       names_start());
}

/* release: who sees the number sees the rule. */
static void rule_publish(struct fault_rule *rule)
{
	runtime.config.wants_names |= wants_names(&rule->fault) && can_have_names();
	atomic_fetch_add_explicit(&fault_rules.count, 1, memory_order_release);
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void keep(_Atomic uint64_t *own, uint64_t value)
{
	atomic_store_explicit(own, value, memory_order_relaxed);
}

uint32_t fault_rule_connection(struct fault_rule *rule, uint64_t now_ns)
{
	struct fault_record *record = fault_rule_record(rule);
	uint32_t number = fault_record_connection(record, now_ns);

	if (record != &rule->own)
		keep(&rule->own.connections, number);
	return number;
}

bool fault_rule_strike(struct fault_rule *rule, uint64_t now_ns)
{
	struct fault_record *record = fault_rule_record(rule);

	if (!fault_record_strike(record, &rule->fault, now_ns))
		return false;
	if (record != &rule->own) {
		keep(&rule->own.injected, load(&record->injected));
		keep(&rule->own.struck_ns, load(&record->struck_ns));
	}
	return true;
}

static void take_own(const struct fault *fault, uint64_t now_ns)
{
	struct fault_rule *rule = rule_next();
	struct fault_record *record;
	char text[FAULT_TEXT_SIZE];

	if (!rule)
		return;
	fault_describe(fault, text, sizeof(text));
	rule->fault = *fault;
	record = fault_table_claim(
			&runtime.segment->faults, fault, text, runtime.config.run, now_ns);
	keep(&rule->own.began_ns, record ? load(&record->began_ns) : now_ns);
	if (!record)
		record = &rule->own;
	atomic_store_explicit(&rule->record, record, memory_order_relaxed);
	keep(&rule->key, load(&record->key));
	rule_publish(rule);
}

static struct fault_rule *find_added(uint64_t key)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		if (fault_rules.rules[i].is_added && load(&fault_rules.rules[i].key) == key)
			return &fault_rules.rules[i];
	}
	return NULL;
}

/* The same rule, added and cleared before: it has its place already. Until its record and key agree
 * again, others count in its own. */
static struct fault_rule *find_gone(const struct fault *fault)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		struct fault_rule *rule = &fault_rules.rules[i];

		if (rule->is_added && rule->fault.hash == fault->hash &&
				atomic_load_explicit(&rule->is_gone, memory_order_relaxed))
			return rule;
	}
	return NULL;
}

static void point_at(struct fault_rule *rule, struct fault_record *record)
{
	keep(&rule->own.connections, 0);
	keep(&rule->own.injected, 0);
	keep(&rule->own.struck_ns, 0);
	atomic_store_explicit(&rule->record, record, memory_order_relaxed);
	keep(&rule->key, view.key);
	atomic_store_explicit(&rule->is_gone, false, memory_order_relaxed);
}

/* What `view` shows of the record at `index` was added by hand. */
static void take_added(uint32_t index)
{
	struct fault_rule *rule = find_added(view.key), *gone;
	struct fault_record *record =
			fault_table_at(&runtime.segment->faults, index, view.key);

	if (rule) {
		atomic_store_explicit(&rule->is_gone, false, memory_order_relaxed);
		return;
	}
	rule = rule_next();
	if (!rule || !record || !fault_parse(view.name, view.text, strlen(view.text), &rule->fault,
					error_text, sizeof(error_text)))
		return;
	if (!fault_is_for(&rule->fault, own_program, (uint32_t)getauxval(AT_EUID)))
		return;
	rule->fault.expire_ns = runtime.config.expire_ns;
	gone = find_gone(&rule->fault);
	point_at(gone ? gone : rule, record);
	if (!gone) {
		rule->is_added = true;
		rule_publish(rule);
	}
	log_line("%s: fault rule added: %s", view.name, view.text);
}

static void forget_added(void)
{
	uint32_t count = fault_rules_count();

	for (uint32_t i = 0; i < count; i++) {
		if (fault_rules.rules[i].is_added)
			atomic_store_explicit(&fault_rules.rules[i].is_gone, true,
					memory_order_relaxed);
	}
}

static void read_added(uint64_t now_ns)
{
	/* acquire: the rules are in the table before its generation says so. */
	uint64_t generation = atomic_load_explicit(
			&runtime.segment->faults.generation, memory_order_acquire);

	forget_added();
	for (uint32_t i = 0; i < FAULT_TABLE_SIZE; i++) {
		if (fault_table_read(&runtime.segment->faults, i, now_ns, &view) && view.is_added &&
				!view.is_over)
			take_added(i);
	}
	atomic_store_explicit(&fault_rules.generation, generation, memory_order_release);
}

bool fault_rules_start(const char *program, uint64_t now_ns)
{
	uint32_t capacity = reserve_affordable(
			FAULT_RULES_MAX, sizeof(struct fault_rule), FAULT_RULES_LEAST);

	fault_rules.rules = reserve(capacity * sizeof(struct fault_rule));
	if (!fault_rules.rules)
		return false;
	fault_rules.capacity = capacity;
	own_program = program;
	for (size_t i = 0; i < runtime.config.fault_count; i++)
		take_own(&runtime.config.faults[i], now_ns);
	read_added(now_ns);
	return true;
}

/* Where no signal could be kept off, a handler may have left by siglongjmp, or the thread have been
 * cancelled: nothing takes so long. */
static bool was_left(uint64_t reading, uint64_t now_ns)
{
	return reading & READING_MAY_BE_LEFT && clock_elapsed_ns(reading, now_ns) > LEFT_NS;
}

static void read_changes(uint64_t now_ns, bool may_be_left)
{
	uint64_t found = load(&fault_rules.reading);
	uint64_t own = (now_ns & ~READING_MAY_BE_LEFT) | may_be_left;

	if (!fault_rules.rules || (found && !was_left(found, now_ns)) ||
			!atomic_compare_exchange_strong_explicit(&fault_rules.reading, &found, own,
					memory_order_acquire, memory_order_relaxed))
		return;
	if (fault_rules_have_changed())
		read_added(now_ns);
	atomic_compare_exchange_strong_explicit(&fault_rules.reading, &own, 0,
			memory_order_release, memory_order_relaxed);
}

/* Out of line: who looks before each call does not carry the frames of reading. */
__attribute__((noinline)) void fault_rules_refresh(uint64_t now_ns)
{
	int error = errno;
	bool may_call = own_calls_begin();
	/* A handler that leaves by siglongjmp would leave the reading behind, for ever. */
	uint64_t signals = may_call ? thread_block_signals() : 0;

	read_changes(now_ns, !may_call);
	if (may_call) {
		thread_restore_signals(signals);
		own_calls_end();
	}
	errno = error;
}

bool fault_rule_is_over(struct fault_rule *rule, uint64_t now_ns)
{
	const struct fault *fault = &rule->fault;
	struct fault_record *record = fault_rule_record(rule);
	uint64_t elapsed_ns = clock_elapsed_ns(load(&record->began_ns), now_ns);

	if (atomic_load_explicit(&rule->is_gone, memory_order_relaxed))
		return true;
	/* Of an added rule the record is given away only when its time is over. */
	if (rule->is_added && (record == &rule->own || fault_record_is_over(record, now_ns)))
		return true;
	return (fault->expire_ns && elapsed_ns >= fault->expire_ns) ||
			(fault->for_ns && elapsed_ns >= fault->after_ns + fault->for_ns);
}

uint32_t fault_rules_match(const struct endpoint *endpoint, enum fault_protocol protocol,
		uint64_t now_ns, uint32_t *ret, uint32_t room)
{
	uint32_t count = fault_rules_count(), found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct fault_rule *rule = &fault_rules.rules[i];

		if (rule->is_added && fault_rule_is_over(rule, now_ns))
			continue;
		if (rule->fault.is_lookup == endpoint->is_lookup &&
				rule->fault.protocol == protocol)
			fault_record_seen(fault_rule_record(rule));
		if (!fault_matches(&rule->fault, endpoint, protocol))
			continue;
		if (rule->fault.target.is_excluded)
			return 0;
		if (found < room) {
			ret[found++] = i;
			continue;
		}
		fault_record_matched(fault_rule_record(rule));
		fault_record_suppressed(fault_rule_record(rule), FAULT_IMPOSSIBLE);
	}
	return found;
}

uint32_t fault_rules_match_peer(const struct sockaddr *peer, socklen_t length,
		enum fault_protocol protocol, uint64_t now_ns, uint32_t *ret, uint32_t room)
{
	struct address address;
	struct endpoint endpoint = { .address = &address };
	char host[HOST_SIZE];

	if (!endpoint_read(peer, length, &address, &endpoint.port))
		return 0;
	if (runtime.config.wants_names && names_find(&address, host))
		endpoint.host = host;
	return fault_rules_match(&endpoint, protocol, now_ns, ret, room);
}

bool fault_rules_want_name(const char *name)
{
	struct endpoint endpoint = { .host = name, .is_lookup = true };
	uint32_t count = fault_rules.rules ? fault_rules_count() : 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct fault *fault = &fault_rules.rules[i].fault;

		if (wants_names(fault) && target_matches(&fault->target, &endpoint))
			return true;
	}
	return false;
}

void fault_rules_forked(void)
{
	keep(&fault_rules.reading, 0);
}
