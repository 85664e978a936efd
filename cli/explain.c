/* SPDX-License-Identifier: MIT */
#include "cli/explain.h"

#include <stdio.h>
#include <string.h>

static const char *const verdicts[] = {
	[EXPLAIN_APPLIES] = "applies",
	[EXPLAIN_EXCLUDES] = "excludes",
	[EXPLAIN_SHADOWED] = "shadowed",
	[EXPLAIN_DIFFERS] = "no match",
};

static const char *const kinds[] = {
	[TARGET_EXACT] = "exact",
	[TARGET_SUFFIX] = "suffix",
	[TARGET_GLOB] = "glob",
	[TARGET_RANGE] = "range",
	[TARGET_ANY] = "any",
};

const char *explain_verdict_name(enum explain_verdict verdict)
{
	return verdicts[verdict];
}

static bool has_ports(const struct target *target)
{
	return target->port_low != 0 || target->port_high != UINT16_MAX;
}

static bool port_fits(const struct target *target, const struct endpoint *endpoint)
{
	return endpoint->is_lookup || (endpoint->port >= target->port_low &&
			endpoint->port <= target->port_high);
}

/* Of a name that could not be resolved the port counts all the same. */
static bool matches(const struct target *target, const struct endpoint *endpoint)
{
	return port_fits(target, endpoint) && target_matches(target, endpoint);
}

static const char *format_ports(const struct target *target, char ret[32])
{
	if (target->port_low == target->port_high)
		snprintf(ret, 32, "%u", target->port_low);
	else
		snprintf(ret, 32, "%u-%u", target->port_low, target->port_high);
	return ret;
}

/* How a target that matches does so. */
static void describe_match(const struct target *target, const struct endpoint *endpoint, char *ret)
{
	static const char *const ways[] = {
		[TARGET_EXACT] = "exact: this name",
		[TARGET_SUFFIX] = "suffix: the name ends in it",
		[TARGET_GLOB] = "glob: the name fits it",
		[TARGET_RANGE] = "range: the address is in it",
		[TARGET_ANY] = "any: everything",
	};
	bool by_address = target->kind == TARGET_EXACT && target->is_address;
	char ports[32];

	if (!has_ports(target))
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s",
				by_address ? "exact: this address" : ways[target->kind]);
	else
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s, port %s%s",
				by_address ? "exact: this address" : ways[target->kind],
				format_ports(target, ports),
				endpoint->is_lookup ? ", which lookups ignore" : "");
}

/* Why a target does not match. */
static void describe_difference(const struct target *target, const struct endpoint *endpoint,
		char *ret)
{
	char ports[32];

	if (!port_fits(target, endpoint))
		snprintf(ret, EXPLAIN_WHY_SIZE, "port %u is not %s%s", endpoint->port,
				target->port_low == target->port_high ? "" : "one of ",
				format_ports(target, ports));
	else if (!target->is_address)
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s",
				endpoint->host ? "another name"
					       : "goes by names, and this is an address: matches "
						 "where the program resolved such a name");
	else if (endpoint->is_lookup)
		snprintf(ret, EXPLAIN_WHY_SIZE, "goes by addresses, and a lookup has none yet");
	else if (!endpoint->address || endpoint->address->family == 0)
		snprintf(ret, EXPLAIN_WHY_SIZE, "goes by addresses, and none is known");
	else
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s",
				target->kind == TARGET_RANGE ? "the address is not in it"
							     : "another address");
}

static size_t target_length(const struct target *target)
{
	return target->kind == TARGET_RANGE ? target->prefix_bits : target->host_length;
}

/* Why the one is asked before the other, as target_compare() has it. */
static void describe_order(const struct rule *first, const struct rule *other, char *ret)
{
	const struct target *a = &first->target, *b = &other->target;

	if (a->is_excluded)
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s (%s) keeps it out of all other rules",
				first->name, a->text);
	else if (a->kind != b->kind)
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s comes first: %s before %s", first->name,
				kinds[a->kind], kinds[b->kind]);
	else if (a->is_address != b->is_address)
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s comes first: a name before an address",
				first->name);
	else if (target_length(a) != target_length(b))
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s comes first: the longer %s", first->name,
				kinds[a->kind]);
	else if (target_compare(a, b) != 0)
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s comes first: fewer ports", first->name);
	else
		snprintf(ret, EXPLAIN_WHY_SIZE, "%s comes first: by the order of names",
				first->name);
}

static void explain_rule(const struct rule *rule, const struct rule *first,
		const struct endpoint *endpoint, struct explanation *ret)
{
	if (!matches(&rule->target, endpoint)) {
		ret->verdict = EXPLAIN_DIFFERS;
		describe_difference(&rule->target, endpoint, ret->why);
	} else if (rule == first) {
		ret->verdict = rule->target.is_excluded ? EXPLAIN_EXCLUDES : EXPLAIN_APPLIES;
		describe_match(&rule->target, endpoint, ret->why);
	} else {
		ret->verdict = EXPLAIN_SHADOWED;
		describe_order(first, rule, ret->why);
	}
}

void explain_rules(const struct config *config, const struct endpoint *endpoint,
		struct explanation *ret)
{
	const struct rule *first = NULL;

	for (size_t i = 0; i < config->rule_count && !first; i++) {
		if (matches(&config->rules[i].target, endpoint))
			first = &config->rules[i];
	}
	for (size_t i = 0; i < config->rule_count; i++)
		explain_rule(&config->rules[i], first, endpoint, &ret[i]);
}

/* Is it about connections where lookups are asked for, or the other way round? An exclusion of a
 * host is about both. */
static bool is_of_other_kind(const struct fault *fault, const struct endpoint *endpoint)
{
	if (fault->is_lookup)
		return !endpoint->is_lookup;
	return endpoint->is_lookup && !fault->target.is_excluded;
}

static bool fault_strikes(const struct fault *fault, const struct endpoint *endpoint)
{
	return port_fits(&fault->target, endpoint) &&
			fault_matches(fault, endpoint, fault->protocol);
}

/* What else must be so, which is the program's to say. */
static void describe_scope(const struct fault *fault, char *ret)
{
	size_t length = strlen(ret);

	if (fault->protocol == FAULT_UDP)
		length += (size_t)snprintf(ret + length, EXPLAIN_WHY_SIZE - length,
				", datagrams only");
	if (fault->proc[0])
		length += (size_t)snprintf(ret + length, EXPLAIN_WHY_SIZE - length,
				", in programs called %s", fault->proc);
	if (fault->has_uid)
		snprintf(ret + length, EXPLAIN_WHY_SIZE - length, ", of user %u only", fault->uid);
}

static void explain_fault(const struct fault *fault, const struct fault *exclusion,
		const struct endpoint *endpoint, struct explanation *ret)
{
	ret->verdict = EXPLAIN_DIFFERS;
	if (is_of_other_kind(fault, endpoint)) {
		snprintf(ret->why, sizeof(ret->why), "is about %s",
				fault->is_lookup ? "lookups" : "connections");
	} else if (!fault_strikes(fault, endpoint)) {
		describe_difference(&fault->target, endpoint, ret->why);
	} else if (exclusion && !fault->target.is_excluded) {
		ret->verdict = EXPLAIN_SHADOWED;
		snprintf(ret->why, sizeof(ret->why), "%s (%s) keeps it out of all other rules",
				exclusion->name, exclusion->target.text);
	} else {
		ret->verdict = fault->target.is_excluded ? EXPLAIN_EXCLUDES : EXPLAIN_APPLIES;
		describe_match(&fault->target, endpoint, ret->why);
		describe_scope(fault, ret->why);
	}
}

/* Streams and datagrams have different ones. */
static void leave_out(const struct fault faults[], size_t count, struct explanation *ret)
{
	size_t applying[FAULT_UDP + 1] = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (ret[i].verdict != EXPLAIN_APPLIES ||
				++applying[faults[i].protocol] <= FAULT_TOGETHER_MAX)
			continue;
		ret[i].verdict = EXPLAIN_SHADOWED;
		snprintf(ret[i].why, sizeof(ret[i].why), "%d others come first, and no more apply "
				"together", FAULT_TOGETHER_MAX);
	}
}

void explain_faults(const struct fault faults[], size_t count, const struct endpoint *endpoint,
		struct explanation *ret)
{
	const struct fault *exclusion = NULL;

	for (size_t i = 0; i < count && !exclusion; i++) {
		if (faults[i].target.is_excluded && fault_strikes(&faults[i], endpoint))
			exclusion = &faults[i];
	}
	for (size_t i = 0; i < count; i++)
		explain_fault(&faults[i], exclusion, endpoint, &ret[i]);
	leave_out(faults, count, ret);
}
