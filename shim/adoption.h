/* SPDX-License-Identifier: MIT */
/*
 * Connections that no rule concerned when they were made, and that a fault rule concerns which was
 * added by hand since: who keeps one alive connects no more. Lock-free, async-signal-safe; errno is
 * kept.
 */
#ifndef SHUNT_SHIM_ADOPTION_H
#define SHUNT_SHIM_ADOPTION_H

#include <stdint.h>

/* fault_rules_refresh(), and then a look at them all, once for each change. */
void adoption_refresh(uint64_t now_ns);

#endif
