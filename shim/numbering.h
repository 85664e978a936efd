/* SPDX-License-Identifier: MIT */
/*
 * The numbers of a connection: one of each rule that it falls under, which counts its connections
 * from 1 in all processes. Async-signal-safe, errno is kept.
 */
#ifndef SHUNT_SHIM_NUMBERING_H
#define SHUNT_SHIM_NUMBERING_H

#include <stdint.h>

#include "shim/inject_slot.h"

/* One more rule gives the connection a number, under which it strikes. NULL: no room for it, which
 * is counted as suppressed. */
struct strike *numbering_add(struct slot *slot, uint32_t rule, uint64_t now_ns);

/* All rules of an attempt, in one go: those that strike the same connections count them alike,
 * whatever other threads do. */
void numbering_add_all(struct slot *slot, const uint32_t *rules, uint32_t count, uint64_t now_ns);

/* In a forked child: nobody is at it. */
void numbering_forked(void);

#endif
