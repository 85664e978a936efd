/* SPDX-License-Identifier: MIT */
/*
 * Makes a segment with cells in known states, without any program under the library:
 *
 *	make_segment PATH WORD...
 *
 * Words are done in order; those after `cell` are about that cell.
 *	rule:NAME  rule:NAME=ERROR  match:NAME=N
 *	cell:NAME,HOST,ADDRESS,PORT   lookup:NAME,HOST   (HOST and ADDRESS may be empty)
 *	ago:SECONDS   what follows happened so long ago
 *	success:N  failure:N   calls with that end
 *	trip  force:open
 *	fault:NAME=RULE   of an environment   added:NAME=RULE   by hand, for a second
 *	fill   claims cells until none is left
 *	hold   says "ready" and stays until standard input ends
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/breaker.h"
#include "core/control.h"
#include "core/cell.h"
#include "core/clock.h"
#include "core/fault_text.h"
#include "core/segment.h"
#include "core/settings.h"
#include "core/target.h"

static struct segment *segment;
static struct cell *cell;
static uint64_t ago_ns;

static _Noreturn void die(const char *what, const char *word)
{
	fprintf(stderr, "make_segment: %s: %s\n", what, word);
	exit(1);
}

static uint64_t now_ns(void)
{
	return clock_now_ns() - ago_ns;
}

static struct breaker breaker(void)
{
	if (!cell)
		die("no cell yet", "breaker");
	return (struct breaker){
		.cell = cell, .settings = &settings_default, .events = &segment->events, .pid = 4242
	};
}

static void claim(enum cell_kind kind, const char *name, const char *host, const char *address_text,
		uint16_t port)
{
	struct address address = { 0 };
	struct cell_key key;

	if (address_text[0] != '\0' && !address_parse(address_text, &address))
		die("no address", address_text);
	cell_key_make(&key, kind, name, host, &address, port, &settings_default.window);
	cell = segment_cell(segment, &key, cell_key_hash(&key), now_ns());
}

static void do_cell(char *value)
{
	const char *name = strsep(&value, ",");
	const char *host = strsep(&value, ",");
	const char *address = strsep(&value, ",");

	if (!address || !value)
		die("expected NAME,HOST,ADDRESS,PORT", name);
	claim(CELL_CONNECTION, name, host, address, (uint16_t)atoi(value));
	if (!cell)
		die("no cell is free", name);
}

static void do_lookup(char *value)
{
	const char *name = strsep(&value, ",");

	claim(CELL_LOOKUP, name, value, "", 0);
	if (!cell)
		die("no cell is free", name);
}

static void do_fill(char *value)
{
	char host[32];

	(void)value;
	for (int i = 0; i <= SEGMENT_CELLS; i++) {
		snprintf(host, sizeof(host), "h%d", i);
		claim(CELL_CONNECTION, "FILL", host, "", 1);
	}
}

static void do_rule(char *value)
{
	const char *name = strsep(&value, "=");

	if (!segment_rule(segment, name, value))
		die("no record is free", name);
}

static void do_match(char *value)
{
	const char *name = strsep(&value, "=");
	struct segment_rule *rule = segment_rule(segment, name, NULL);

	atomic_fetch_add_explicit(&rule->matched, strtoull(value, NULL, 10), memory_order_relaxed);
}

static void call(enum outcome outcome, char *value)
{
	struct breaker one = breaker();

	for (long left = strtol(value, NULL, 10); left > 0; left--) {
		struct permit permit;

		breaker_acquire(&one, now_ns(), 0, &permit, &(place_t){ 0 });
		breaker_report(&one, permit, outcome, 1000000, now_ns());
	}
}

static void do_success(char *value)
{
	call(OUTCOME_SUCCESS, value);
}

static void do_failure(char *value)
{
	call(OUTCOME_FAILURE, value);
}

static void do_trip(char *value)
{
	struct breaker one = breaker();

	(void)value;
	control_trip(&one, now_ns());
}

static void do_force(char *value)
{
	struct breaker one = breaker();

	control_force(&one, strcmp(value, "open") ? FORCE_CLOSED : FORCE_OPEN, now_ns());
}

static void do_ago(char *value)
{
	ago_ns = strtoull(value, NULL, 10) * 1000000000u;
}

static struct fault *parse_fault(char *value)
{
	static struct fault fault;
	const char *name = strsep(&value, "=");
	char problem[256] = "expected NAME=RULE";

	if (!value || !fault_parse(name, value, strlen(value), &fault, problem, sizeof(problem)))
		die(problem, name);
	return &fault;
}

static void do_fault(char *value)
{
	const struct fault *fault = parse_fault(value);

	if (!fault_table_claim(&segment->faults, fault, fault->target.text, 1, now_ns()))
		die("no record is free", fault->name);
}

static void do_added(char *value)
{
	const struct fault *fault = parse_fault(value);

	if (!fault_table_add(&segment->faults, fault, fault->target.text, now_ns() + 1000000000u,
			now_ns()))
		die("no record is free", fault->name);
}

static void do_hold(char *value)
{
	(void)value;
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static const struct {
	const char *name;
	void (*function)(char *value);
} words[] = {
	{ "cell", do_cell }, { "lookup", do_lookup }, { "fill", do_fill }, { "rule", do_rule },
	{ "match", do_match }, { "success", do_success }, { "failure", do_failure },
	{ "fault", do_fault }, { "added", do_added },
	{ "trip", do_trip }, { "force", do_force }, { "ago", do_ago }, { "hold", do_hold },
};

static void do_word(char *word)
{
	const char *name = strsep(&word, ":");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].name, name) == 0) {
			words[i].function(word);
			return;
		}
	}
	die("no such word", name);
}

int main(int argc, char *argv[])
{
	const char *why = "usage";

	segment = argc > 1 ? segment_open(argv[1], true, &why) : NULL;
	if (!segment)
		die("no segment", why);
	for (int i = 2; i < argc; i++)
		do_word(argv[i]);
	return 0;
}
