/* SPDX-License-Identifier: MIT */
/*
 * The environment and a file, read into rules. Told the environment; reads only the file that
 * SHUNT_CONF names. Bad input changes nothing but the list of problems.
 */
#ifndef SHUNT_CORE_CONFIG_H
#define SHUNT_CORE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "core/config_rules.h"

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
 * counts as not set. A bound of faults that cannot be read (SHUNT_EXPIRE, a fault rule ^target)
 * leaves all fault rules out. *config is overwritten. With is_off nothing else is looked at: no
 * rules, no problems. The file's descriptor is never 0 to 2 and is closed again. Keeps errno. Not
 * thread-safe with itself on one config.
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

#endif
