/* SPDX-License-Identifier: MIT */
/*
 * Faults, from start to end: beneath the hooks, in the table of real functions, and only where
 * fault rules are, or from when they are added by hand.
 */
#ifndef SHUNT_SHIM_INJECT_H
#define SHUNT_SHIM_INJECT_H

#include "shim/fault_rules.h"

/* Are there, or were there, fault rules? */
extern _Atomic bool inject_is_on __attribute__((visibility("hidden")));

/* At start, when runtime and fd_table are ready. `program` is its base name, and stays. */
void inject_start(const char *program);

/* Rules were added or cleared by hand (fault_rules_have_changed()). Lock-free, keeps errno. */
void inject_refresh(void);

/* In the gate, where it looks anyway: two loads where nothing changed. */
static inline void inject_look(void)
{
	if (__builtin_expect(fault_rules_have_changed(), 0))
		inject_refresh();
}

/* The same outside of the gate: before start, or in a child of vfork, nothing is read. */
static inline void inject_look_outside(void)
{
	if (runtime.segment && __builtin_expect(fault_rules_have_changed(), 0) &&
			runtime_is_judging())
		inject_refresh();
}

/* The program ends: what was chosen and never struck is counted so. */
void inject_exit(void);

/* In a forked child. */
void inject_forked(void);

#endif
