/* SPDX-License-Identifier: MIT */
/*
 * What is chosen when a unit begins, a connection or a call on it: once, since nothing that a
 * system call comes to is the same in another run. And how a strike that was chosen is carried out.
 * Async-signal-safe; errno is kept.
 */
#ifndef SHUNT_SHIM_INJECT_CHOOSE_H
#define SHUNT_SHIM_INJECT_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/inject_slot.h"

/* A new attempt of the connection, under these rules: each gives it a number. */
void inject_attempt_begins(const struct sight *sight, const uint32_t *rules, uint32_t count);

/* The attempt is made, or fails: what was armed for it, and did not strike, never will. */
void inject_attempt_ended(struct slot *slot);

/* Before each call on a connection: another unit may have begun, rules may have been added or
 * cleared. False: no rule has anything to do with it now. */
bool inject_concerns(struct slot *slot, struct connection *connection, int fd);

/* Carries out a strike that is armed, which then is in state `next`. False: it does not strike
 * after all (`times`, its end, another thread was first). */
bool inject_strikes(const struct sight *sight, struct strike *strike, enum strike_state next);

/* May anything come late here? */
bool inject_may_delay(const struct sight *sight);

/* Carries out one that makes something late: by how much, 0 where it does not strike. */
uint64_t inject_strikes_delay(const struct sight *sight, struct strike *strike);

/* It cannot be carried out. */
void inject_is_suppressed(struct slot *slot, struct strike *strike, enum fault_reason reason);

/* Has its rule come to its end? What goes on, ends then. */
bool inject_is_over(const struct strike *strike, uint64_t now_ns);

/* At the program's end: what never struck is counted so. */
void inject_choices_end(void);
/* In a forked child. */
void inject_choices_forked(void);

#endif
