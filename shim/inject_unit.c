/* SPDX-License-Identifier: MIT */
#include "shim/inject_unit.h"

#include "core/clock.h"
#include "core/format.h"
#include "shim/fault_report.h"
#include "shim/own_call.h"

static uint64_t elapsed_ns(struct fault_rule *rule, uint64_t now_ns)
{
	return clock_elapsed_ns(atomic_load_explicit(&fault_rule_record(rule)->began_ns,
				memory_order_relaxed), now_ns);
}

static struct fault_choice choose_replayed(const struct fault *fault, struct fault_unit unit)
{
	const struct injection *injection = fault_report_find(fault->name, unit);

	if (injection && injection->kind == fault->kind)
		return (struct fault_choice){ FAULT_STRIKES, injection->value };
	return (struct fault_choice){ FAULT_BY_NUMBER, 0 };
}

struct fault_choice inject_unit_choose(const struct inject_unit *unit, uint64_t now_ns)
{
	struct fault_rule *rule = unit->rule;
	struct fault_choice choice;

	fault_record_matched(fault_rule_record(rule));
	if (fault_report_is_replayed())
		choice = choose_replayed(&rule->fault, unit->unit);
	else if (fault_rule_is_over(rule, now_ns))
		choice.reason = FAULT_BY_TIME;
	else
		choice = fault_choose(&rule->fault, runtime.seed, unit->unit,
				elapsed_ns(rule, now_ns));
	if (choice.reason == FAULT_STRIKES && runtime.observe)
		choice.reason = FAULT_BY_MODE;
	if (choice.reason != FAULT_STRIKES)
		fault_record_suppressed(fault_rule_record(rule), choice.reason);
	return choice;
}

/* So that a dashboard tells chaos from an outage. */
static void write_event(const struct inject_unit *unit, uint64_t now_ns)
{
	struct fault_rule *rule = unit->rule;
	struct event event = {
		.time_ns = now_ns,
		.kind = EVENT_INJECTED,
		.pid = runtime.pid,
		.detail = (uint32_t)atomic_load_explicit(
				&fault_rule_record(rule)->injected, memory_order_relaxed),
		.is_lookup = rule->fault.is_lookup,
	};

	if (!fault_record_is_news(fault_rule_record(rule), now_ns))
		return;
	text_copy(event.name, sizeof(event.name), rule->fault.name);
	text_copy(event.target, sizeof(event.target), rule->fault.target.text);
	event_write(&runtime.segment->events, &event);
}

bool inject_unit_strikes(const struct inject_unit *unit, uint64_t value, uint64_t now_ns)
{
	struct fault_rule *rule = unit->rule;
	struct injection injection = {
		.unit = unit->unit,
		.kind = rule->fault.kind,
		.value = value,
	};

	if (fault_report_is_replayed()) {
		atomic_fetch_add_explicit(&fault_rule_record(rule)->injected, 1,
				memory_order_relaxed);
	} else if (fault_rule_is_over(rule, now_ns)) {
		fault_record_suppressed(fault_rule_record(rule), FAULT_BY_TIME);
		return false;
	} else if (!fault_rule_strike(rule, now_ns)) {
		return false;
	}
	text_copy(injection.rule, sizeof(injection.rule), rule->fault.name);
	if (!fault_report(&injection))
		fault_record_unreported(fault_rule_record(rule));
	write_event(unit, now_ns);
	if (unit->cell)
		cell_count(unit->cell, CELL_TOTAL_injected);
	return true;
}

uint64_t inject_unit_strikes_delay(const struct inject_unit *unit, uint64_t delay_ns,
		uint64_t now_ns)
{
	if (own_calls_are_forbidden()) {
		fault_record_suppressed(fault_rule_record(unit->rule), FAULT_BY_MODE);
		return 0;
	}
	return inject_unit_strikes(unit, delay_ns, now_ns) ? delay_ns : 0;
}

bool inject_unit_is_over(struct fault_rule *rule, uint64_t now_ns)
{
	return !fault_report_is_replayed() && fault_rule_is_over(rule, now_ns);
}
