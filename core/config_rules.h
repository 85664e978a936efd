/* SPDX-License-Identifier: MIT */
/*
 * The rules that a process has, which of them apply to an endpoint, and what was left out. Filled
 * by core/config.h. Allocates nothing: everything is in struct config, which is large (keep it
 * static).
 */
#ifndef SHUNT_CORE_CONFIG_RULES_H
#define SHUNT_CORE_CONFIG_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "core/rule.h"
#include "core/span.h"

#define CONFIG_MAX_RULES 128
#define CONFIG_MAX_FAULTS 32
#define CONFIG_MAX_PROBLEMS 32
#define CONFIG_PROBLEM_SIZE 256
#define CONFIG_FILE_SIZE (256 * 1024) /* of SHUNT_CONF, at most */

/* One thing that was left out, ready to print: "SHUNT_BREAK_PAY: sleep: expected ..., got '5'". */
struct problem {
	char name[RULE_NAME_SIZE]; /* of the breaker rule, or "" */
	char text[CONFIG_PROBLEM_SIZE];
};

enum log_kind { LOG_OFF, LOG_STDERR, LOG_SYSLOG, LOG_FILE };
enum timer_mode { TIMER_AUTO, TIMER_ON, TIMER_OFF };

struct config {
	/* Exclusions, then most specific first: the first that matches applies. */
	struct rule rules[CONFIG_MAX_RULES];
	size_t rule_count;
	/* In the same order; all that match apply, unless an exclusion among them does. */
	struct fault faults[CONFIG_MAX_FAULTS];
	size_t fault_count;
	struct problem problems[CONFIG_MAX_PROBLEMS];
	size_t problem_count; /* may exceed CONFIG_MAX_PROBLEMS: the rest was not kept */
	bool is_off;          /* SHUNT_OFF=1 (or SHUNT_PROC / SHUNT_SKIP keep this program out) */
	bool observe;         /* SHUNT_MODE=observe; also where SHUNT_MODE cannot be read */
	bool state_private;   /* SHUNT_STATE=private */
	bool backtrace;
	bool wants_names;     /* some rule, breaker or fault, is decided by name */
	bool has_fallback;    /* some breaker rule has one */
	bool has_bad_bound;   /* SHUNT_EXPIRE or a fault rule ^target cannot be read: no faults */
	enum log_kind log;
	enum timer_mode timer;
	bool has_seed;
	uint64_t seed;
	uint64_t expire_ns;   /* SHUNT_EXPIRE, 0: never; in each fault rule too */
	uint64_t run;         /* SHUNT_RUN: which `shunt run`; 0: none */
	char state_path[256]; /* "" for the default */
	char log_path[256];
	char report_path[256]; /* SHUNT_REPORT; "": none, as below */
	char replay_path[256];
	char file[CONFIG_FILE_SIZE]; /* what SHUNT_CONF names, while it is read */
};

/* A rule as it stands somewhere. */
struct config_source {
	const char *where; /* in messages */
	struct span name, text;
	bool is_from_file;
};

/* Each adds a rule in its place in the order, or else says what is wrong with it. One of the file
 * whose name a rule of the environment has yields without a word. */
void config_add_rule(struct config *config, const struct config_source *source);
void config_add_fault(struct config *config, const struct config_source *source);

/* Something that was left out: of the breaker rule `name`, or of none (""). */
void config_add_problem(
		struct config *config, const char *name, const char *where, const char *what);

/* The same of no rule, in the words of text_expected(). */
void config_add_expected(struct config *config, const char *where, const char *expected,
		struct span got);

/* The first rule that applies to the endpoint, or NULL: none does, or an exclusion (^) matches it.
 * Async-signal-safe. */
const struct rule *config_match(const struct config *config, const struct endpoint *endpoint);

/* Every fault rule that applies to the endpoint: bit = index of `faults`, to be asked from the
 * lowest on. 0 where an exclusion (^) matches it. Async-signal-safe. */
uint32_t config_match_faults(const struct config *config, const struct endpoint *endpoint,
		enum fault_protocol protocol);

#endif
