/* SPDX-License-Identifier: MIT */
/*
 * The two halves of a connection's readiness, of which each may be held: a reading one (EPOLLIN,
 * PRI, RDHUP, HUP, ERR) and a writing one (EPOLLOUT). What of a registration is in its epoll set
 * while they are.
 */
#ifndef SHUNT_SHIM_HALVES_H
#define SHUNT_SHIM_HALVES_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/registration.h"

/* Of registration.withheld: which halves are not in the set, and whether nothing is. */
#define HALF_IN	     1u
#define HALF_OUT     2u
#define HALVES	     (HALF_IN | HALF_OUT)
#define HALVES_AWAY  4u

/* Of epoll, and of poll, whose bits are the same. */
#define HALVES_ERRORS ((uint32_t)(EPOLLERR | EPOLLHUP)) /* reported whether wanted or not */

/* Until when (CLOCK_MONOTONIC) each half is held; 0 or past: not. */
struct hold_times {
	uint64_t in_ns, out_ns;
};

/* The bits of `events` that `times` holds at now_ns; and the halves. */
uint32_t halves_bits(const struct hold_times *times, uint32_t events, uint64_t now_ns);
uint32_t halves_held(const struct hold_times *times, uint64_t now_ns);

/* Of a registration as it was made, with EPOLLOUT wanted or not: what to withhold of it while these
 * halves are held. `is_failing`: it has errors to report and nothing that is not held. */
uint32_t halves_withheld(uint32_t events, uint32_t halves, bool is_failing);

uint32_t halves_of(const struct registration *registration);
uint32_t halves_events(const struct registration *registration);
uint64_t halves_data(const struct registration *registration);

void halves_set_times(struct registration *registration, const struct hold_times *times);

/* When the first of what is withheld of it is due. */
uint64_t halves_due_ns(const struct registration *registration);

/* Its epoll_ctl(); and the one that leads from what is withheld to what shall be. Straight to the
 * kernel: 0 or a negated errno. */
long halves_control(const struct registration *registration, int operation, uint32_t events);
long halves_move(const struct registration *registration, uint32_t withheld);

#endif
