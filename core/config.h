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

#include "core/settings.h"
#include "core/target.h"

#define RULE_NAME_SIZE 64
#define CONFIG_MAX_RULES 128
#define CONFIG_MAX_PROBLEMS 32
#define CONFIG_PROBLEM_SIZE 256

/* One good breaker rule. */
struct rule {
	char name[RULE_NAME_SIZE]; /* PAY of SHUNT_BREAK_PAY; "default" of SHUNT_BREAK */
	struct target target;
	struct settings settings;
	uint64_t hash; /* of what a cell's key takes from the rule: name and window shape */
};

/* One thing that was left out, ready to print: "SHUNT_BREAK_PAY: sleep: expected ..., got '5'". */
struct problem {
	char name[RULE_NAME_SIZE]; /* of the rule, or "" */
	char text[CONFIG_PROBLEM_SIZE];
};

enum log_kind { LOG_OFF, LOG_STDERR, LOG_SYSLOG, LOG_FILE };
enum timer_mode { TIMER_AUTO, TIMER_ON, TIMER_OFF };

struct config {
	struct rule rules[CONFIG_MAX_RULES]; /* most specific first: the first that matches applies */
	size_t rule_count;
	struct problem problems[CONFIG_MAX_PROBLEMS];
	size_t problem_count; /* may exceed CONFIG_MAX_PROBLEMS: the rest was not kept */
	bool is_off;          /* SHUNT_OFF=1 (or SHUNT_PROC / SHUNT_SKIP keep this program out) */
	bool observe;         /* SHUNT_MODE=observe */
	bool state_private;   /* SHUNT_STATE=private */
	bool backtrace;
	bool wants_names;     /* some rule is decided by name */
	enum log_kind log;
	enum timer_mode timer;
	bool has_seed;
	uint64_t seed;
	char state_path[256]; /* "" for the default */
	char log_path[256];
};

/*
 * `environ` as of execve; `program` is the base name of the running program, for SHUNT_PROC and
 * SHUNT_SKIP (comma-separated globs), or NULL to ignore both. Precedence of same-named rules:
 * environment over file. *config is overwritten. Not thread-safe with itself on one config.
 */
void config_load(struct config *config, char *const environ[], const char *program);

/* Reads rules from text in the form of the file (`break NAME = rule` lines); `where` names it in
 * messages. For `check FILE`. */
void config_load_text(struct config *config, const char *where, const char *text, size_t length);

/* The first rule that applies to the endpoint, or NULL: none, or an exclusion (^) matched first.
 * Async-signal-safe. */
const struct rule *config_match(const struct config *config, const struct endpoint *endpoint);

#endif
