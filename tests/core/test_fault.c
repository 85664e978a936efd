/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/fault.h"
#include "core/setting.h"

#define SECOND 1000000000ull
#define UNITS 10000u

static struct fault fault_of(enum fault_kind kind, enum fault_per per)
{
	struct fault fault = { .kind = kind, .per = per, .ratio = RATIO_ONE, .hash = 77 };

	target_parse("redis:6379", &fault.target);
	return fault;
}

static enum fault_reason reason_at(const struct fault *fault, uint32_t connection, uint32_t call,
		uint64_t elapsed_ns)
{
	return fault_choose(fault, 1, (struct fault_unit){ connection, call }, elapsed_ns).reason;
}

static uint64_t value_at(const struct fault *fault, uint64_t seed, uint32_t connection,
		uint32_t call)
{
	return fault_choose(fault, seed, (struct fault_unit){ connection, call }, 0).value;
}

Test(fault, kinds_and_reasons_have_names)
{
	for (int kind = 0; kind < FAULT_KIND_COUNT; kind++)
		cr_expect_eq((int)fault_kind_of(fault_kind_name((enum fault_kind)kind)), kind);
	cr_expect_eq(fault_kind_of("none"), FAULT_KIND_COUNT);
	cr_expect_eq(fault_kind_of(""), FAULT_KIND_COUNT);
	cr_expect_str_eq(fault_kind_name(FAULT_KIND_COUNT), "none");
	for (int reason = 0; reason < FAULT_REASON_COUNT; reason++)
		cr_expect_gt(strlen(fault_reason_name((enum fault_reason)reason)), 3);
}

Test(fault, strikes_where_nothing_says_otherwise)
{
	struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);

	for (uint32_t i = 1; i < 100; i++)
		cr_expect_eq(reason_at(&fault, i, 1, i * SECOND), FAULT_STRIKES);
	fault.ratio = 0;
	for (uint32_t i = 1; i < UNITS; i++)
		cr_expect_eq(reason_at(&fault, i, 1, 0), FAULT_BY_CHANCE);
	fault.target.is_excluded = true;
	cr_expect_eq(reason_at(&fault, 1, 1, 0), FAULT_IMPOSSIBLE);
}

Test(fault, a_share_strikes)
{
	static const uint32_t ratios[] = { 10000, 200000, 500000, 990000 };

	for (size_t i = 0; i < 4; i++) {
		struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);
		uint32_t struck = 0, expected = ratios[i] / (RATIO_ONE / UNITS);

		fault.ratio = ratios[i];
		for (uint32_t connection = 1; connection <= UNITS; connection++)
			struck += reason_at(&fault, connection, 1, 0) == FAULT_STRIKES;
		/* Four standard deviations at most; the draws are always the same. */
		cr_expect(struck + 200 > expected && struck < expected + 200, "%u: %u", ratios[i],
				struck);
	}
}

Test(fault, the_choice_is_the_seeds_the_rules_and_the_units)
{
	struct fault fault = fault_of(FAULT_LATENCY, FAULT_PER_CALL), other;
	uint64_t value;

	fault.delay_ns = SECOND;
	fault.jitter_ns = SECOND / 2;
	other = fault;
	other.hash++;
	value = value_at(&fault, 1, 5, 6);
	cr_expect_eq(value_at(&fault, 1, 5, 6), value);
	cr_expect_neq(value_at(&fault, 2, 5, 6), value);
	cr_expect_neq(value_at(&fault, 1, 6, 6), value);
	cr_expect_neq(value_at(&fault, 1, 5, 7), value);
	cr_expect_neq(value_at(&other, 1, 5, 6), value);
}

Test(fault, per_connection_the_call_does_not_matter)
{
	struct fault fault = fault_of(FAULT_LATENCY, FAULT_PER_CONNECTION);

	fault.delay_ns = fault.jitter_ns = SECOND;
	fault.ratio = RATIO_ONE / 2;
	for (uint32_t connection = 1; connection < 50; connection++) {
		cr_expect_eq(reason_at(&fault, connection, 1, 0),
				reason_at(&fault, connection, 9, 0));
		cr_expect_eq(value_at(&fault, 1, connection, 1),
				value_at(&fault, 1, connection, 9));
	}
	fault.first = fault.last = 3;
	fault.step = 1;
	fault.ratio = RATIO_ONE;
	cr_expect_eq(reason_at(&fault, 3, 1, 0), FAULT_STRIKES);
	cr_expect_eq(reason_at(&fault, 1, 3, 0), FAULT_BY_NUMBER);
	fault.per = FAULT_PER_CALL;
	cr_expect_eq(reason_at(&fault, 3, 1, 0), FAULT_BY_NUMBER);
	cr_expect_eq(reason_at(&fault, 1, 3, 0), FAULT_STRIKES);
}

static const struct {
	uint32_t first, last, step;
	const char *struck; /* x at 1, 2, ... */
} numbers[] = {
	{ 0, 0, 0, "xxxxxxxxxxxx" },
	{ 3, 3, 1, "..x........." },
	{ 1, 2, 1, "xx.........." },
	{ 3, UINT32_MAX, 1, "..xxxxxxxxxx" },
	{ 3, UINT32_MAX, 2, "..x.x.x.x.x." },
	{ 3, 9, 2, "..x.x.x.x..." },
	{ 2, 9, 3, ".x..x..x...." },
};

Test(fault, numbers_choose)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);

		fault.first = numbers[i].first;
		fault.last = numbers[i].last;
		fault.step = numbers[i].step;
		for (uint32_t number = 1; number <= 12; number++)
			cr_expect_eq(reason_at(&fault, number, 1, 0),
					numbers[i].struck[number - 1] == 'x' ? FAULT_STRIKES :
									       FAULT_BY_NUMBER,
					"row %zu, %u", i, number);
	}
}

static const struct {
	uint64_t after, length, down, up, expire;
	const char *struck; /* x at 0 s, 1 s, ... */
} times[] = {
	{ 0, 0, 0, 0, 0, "xxxxxxxxxxxx" },
	{ 3, 0, 0, 0, 0, "...xxxxxxxxx" },
	{ 0, 3, 0, 0, 0, "xxx........." },
	{ 2, 3, 0, 0, 0, "..xxx......." },
	{ 0, 0, 1, 2, 0, "x..x..x..x.." },
	{ 1, 6, 2, 1, 0, ".xx.xx......" },
	{ 0, 0, 0, 0, 4, "xxxx........" },
	{ 3, 0, 0, 0, 4, "...x........" },
};

Test(fault, times_choose)
{
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);

		fault.after_ns = times[i].after * SECOND;
		fault.for_ns = times[i].length * SECOND;
		fault.down_ns = times[i].down * SECOND;
		fault.up_ns = times[i].up * SECOND;
		fault.expire_ns = times[i].expire * SECOND;
		for (uint64_t at = 0; at < 12; at++)
			cr_expect_eq(reason_at(&fault, 1, 1, at * SECOND),
					times[i].struck[at] == 'x' ? FAULT_STRIKES : FAULT_BY_TIME,
					"row %zu, %llu s", i, (unsigned long long)at);
	}
}

static void expect_within(const struct fault *fault, uint64_t low, uint64_t high, uint64_t mean)
{
	uint64_t sum = 0;

	for (uint32_t call = 1; call <= UNITS; call++) {
		uint64_t value = value_at(fault, 3, 1, call);

		cr_expect(value >= low && value <= high, "%llu", (unsigned long long)value);
		sum += value;
	}
	cr_expect(sum / UNITS > mean - mean / 50 && sum / UNITS < mean + mean / 50, "%llu",
			(unsigned long long)(sum / UNITS));
}

Test(fault, delays_spread_around_what_was_asked_for)
{
	struct fault fault = fault_of(FAULT_LATENCY, FAULT_PER_CALL);

	fault.delay_ns = 300;
	cr_expect_eq(value_at(&fault, 1, 1, 1), 300);
	fault.spread = FAULT_NORMAL;
	cr_expect_eq(value_at(&fault, 1, 1, 1), 300);
	fault.spread = FAULT_UNIFORM;
	fault.jitter_ns = 50;
	expect_within(&fault, 250, 350, 300);
	fault.spread = FAULT_NORMAL;
	expect_within(&fault, 150, 450, 300);
}

Test(fault, a_delay_is_never_below_nothing)
{
	struct fault fault = fault_of(FAULT_LATENCY, FAULT_PER_CALL);
	uint32_t nothing = 0;

	fault.delay_ns = SECOND;
	fault.jitter_ns = 86400 * SECOND;
	for (int spread = FAULT_UNIFORM; spread <= FAULT_NORMAL; spread++) {
		fault.spread = (enum fault_spread)spread;
		for (uint32_t call = 1; call <= 100; call++) {
			nothing += value_at(&fault, 1, 1, call) == 0;
			cr_expect_leq(value_at(&fault, 1, 1, call), 3 * 86400 * SECOND + SECOND);
		}
	}
	cr_expect(nothing > 50 && nothing < 150, "%u", nothing);
}

Test(fault, short_calls_have_every_length_asked_for)
{
	struct fault fault = fault_of(FAULT_SHORT, FAULT_PER_CALL);
	uint32_t counts[6] = { 0 };

	fault.low = 2;
	fault.high = 5;
	for (uint32_t call = 1; call <= 1000; call++)
		counts[value_at(&fault, 1, 1, call) % 6]++;
	cr_expect(counts[0] == 0 && counts[1] == 0);
	for (int i = 2; i < 6; i++)
		cr_expect_gt(counts[i], 150, "%d", i);
	fault.low = fault.high = 1;
	cr_expect_eq(value_at(&fault, 1, 1, 1), 1);
}

Test(fault, other_values_are_the_rules)
{
	static const struct {
		enum fault_kind kind;
		uint64_t value;
	} values[] = {{FAULT_RESET, 5}, {FAULT_CLOSE, 5}, {FAULT_RATE, 5}, {FAULT_TIMEOUT, 6},
			{FAULT_SLOWCLOSE, 6}, {FAULT_CORRUPT, 7}, {FAULT_MAXCONN, 7},
			{FAULT_ERRNO, 8}, {FAULT_REFUSE, 0}, {FAULT_NXDOMAIN, 0}};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct fault fault = fault_of(values[i].kind, FAULT_PER_CONNECTION);

		fault.bytes = 5;
		fault.delay_ns = 6;
		fault.low = 7;
		fault.error = 8;
		cr_expect_eq(value_at(&fault, 1, 1, 1), values[i].value, "%s",
				fault_kind_name(values[i].kind));
	}
}

Test(fault, further_numbers_are_others)
{
	struct fault fault = fault_of(FAULT_CORRUPT, FAULT_PER_CALL);
	struct fault_unit unit = { 1, 1 };

	cr_expect_eq(fault_number(&fault, 1, unit, 0), fault_number(&fault, 1, unit, 0));
	cr_expect_neq(fault_number(&fault, 1, unit, 0), fault_number(&fault, 1, unit, 1));
	unit.call = 2;
	cr_expect_neq(fault_number(&fault, 1, unit, 0),
			fault_number(&fault, 1, (struct fault_unit){ 1, 1 }, 0));
}

static bool matches(const struct fault *fault, const char *host, bool is_lookup,
		enum fault_protocol protocol)
{
	struct address address;
	struct endpoint endpoint = { host, &address, 6379, is_lookup };

	address_parse("10.1.2.3", &address);
	return fault_matches(fault, &endpoint, protocol);
}

Test(fault, is_about_connections_or_lookups_of_its_target)
{
	struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);

	cr_expect(matches(&fault, "redis", false, FAULT_TCP));
	cr_expect_not(matches(&fault, "redis", false, FAULT_UDP));
	cr_expect_not(matches(&fault, "redis", true, FAULT_TCP));
	cr_expect_not(matches(&fault, "other", false, FAULT_TCP));
	fault.protocol = FAULT_UDP;
	cr_expect(matches(&fault, "redis", false, FAULT_UDP));
	cr_expect_not(matches(&fault, "redis", false, FAULT_TCP));
	fault.protocol = FAULT_TCP;
	fault.is_lookup = true;
	cr_expect(matches(&fault, "redis", true, FAULT_TCP));
	cr_expect(matches(&fault, "redis", true, FAULT_UDP));
	cr_expect_not(matches(&fault, "redis", false, FAULT_TCP));
}

Test(fault, an_exclusion_is_about_all_that_its_target_names)
{
	struct fault fault = fault_of(FAULT_KIND_COUNT, FAULT_PER_CONNECTION);

	fault.target.is_excluded = true;
	cr_expect(matches(&fault, "redis", false, FAULT_TCP));
	cr_expect(matches(&fault, "redis", false, FAULT_UDP));
	cr_expect(matches(&fault, "redis", true, FAULT_TCP));
	fault.is_lookup = true;
	cr_expect_not(matches(&fault, "redis", false, FAULT_TCP));
	cr_expect(matches(&fault, "redis", true, FAULT_TCP));
}

Test(fault, is_for_some_processes)
{
	struct fault fault = fault_of(FAULT_REFUSE, FAULT_PER_CONNECTION);

	cr_expect(fault_is_for(&fault, "curl", 1));
	strcpy(fault.proc, "wget|c?rl|java*");
	cr_expect(fault_is_for(&fault, "curl", 1));
	cr_expect(fault_is_for(&fault, "wget", 1));
	cr_expect(fault_is_for(&fault, "java8", 1));
	cr_expect_not(fault_is_for(&fault, "curl2", 1));
	cr_expect(fault_is_for(&fault, NULL, 1), "nobody asks");
	fault.has_uid = true;
	fault.uid = 0;
	cr_expect(fault_is_for(&fault, "curl", 0));
	cr_expect_not(fault_is_for(&fault, "curl", 1));
}

Test(fault, is_placed_like_a_breaker_rule)
{
	static const struct {
		const char *name, *target;
	} rules[] = { { "C", "any" }, { "B", "redis" }, { "A", "redis" }, { "D", ".example" },
		{ "E", "^any" } };
	static struct fault faults[5];
	static const char expected[] = "EABDC";

	for (size_t i = 0; i < 5; i++) {
		strcpy(faults[i].name, rules[i].name);
		cr_assert_null(target_parse(rules[i].target, &faults[i].target));
		fault_place(faults, i);
	}
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(faults[i].name[0], expected[i]);
	cr_expect_eq(fault_find(faults, 5, "D"), &faults[3]);
	cr_expect_null(fault_find(faults, 5, "F"));
}
