/* SPDX-License-Identifier: MIT */
/*
 * The environment and a file, read into rules. Told the environment; reads only the file that
 * SHUNT_CONF names. Allocates nothing: everything is in struct config, which is large (keep it
 * static). Bad input changes nothing but the list of problems.
 */
#ifndef SHUNT_CORE_CONFIG_H
#define SHUNT_CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"
#include "core/rule.h"

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

/* Which process it is that asks, so that it gets its own rules alone. */
struct config_process {
	const char *program; /* base name, for SHUNT_PROC, SHUNT_SKIP and proc= */
	uint32_t euid;       /* for uid= */
};

/*
 * `environ` as of execve. `process` NULL: what is kept out of some processes is not; otherwise
 * SHUNT_PROC and SHUNT_SKIP (comma-separated globs) say whether it is_off, and fault rules with
 * proc= and uid= of others are left out. Precedence of same-named rules:
 * environment over file. A variable other than SHUNT_BREAK* and SHUNT_FAULT* that is set to nothing
 * counts as not set. *config is overwritten. With is_off nothing else is looked at: no rules, no
 * problems. The file's descriptor is never 0 to 2 and is closed again. Keeps errno. Not thread-safe
 * with itself on one config.
 */
void config_load(struct config *config, char *const environ[],
		const struct config_process *process);

/*
 * Adds the rules of a text in the form of the file to *config (zeroed at first): lines such as
 *
 *	break PAY = pay.internal:443 volume=5   # a comment
 *	fault SLOW = redis:6379 latency=300ms 20%
 *
 * `where` names it in messages ("FILE:3: ..."). A rule whose name *config has from the environment
 * yields without a word. For `check FILE`.
 */
void config_load_text(struct config *config, const char *where, const char *text, size_t length);

/* The first rule that applies to the endpoint, or NULL: none does, or an exclusion (^) matches it.
 * Async-signal-safe. */
const struct rule *config_match(const struct config *config, const struct endpoint *endpoint);

/* Every fault rule that applies to the endpoint: bit = index of `faults`, to be asked from the
 * lowest on. 0 where an exclusion (^) matches it. Async-signal-safe. */
uint32_t config_match_faults(const struct config *config, const struct endpoint *endpoint,
		enum fault_protocol protocol);

#endif
