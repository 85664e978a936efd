/* SPDX-License-Identifier: MIT */
/*
 * What has arrived and shall not be seen yet: the answer of a call, the peer's end of stream. Both
 * count from when the kernel had it, as near as it says. Async-signal-safe, errno is kept.
 */
#ifndef SHUNT_SHIM_ARRIVAL_H
#define SHUNT_SHIM_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/inject_choose.h"
#include "shim/withheld.h"

/* May an answer of this connection come late, or is one held already? */
bool arrival_is_watched(struct slot *slot, uint64_t now_ns);

/* The kernel has data, or its end: until when is it held? 0: not at all. */
uint64_t arrival_answer_ns(const struct sight *sight);

/* The same for the end of stream, when nothing is left to read before it. */
uint64_t arrival_end_ns(const struct sight *sight);

/* For shim/hold.h. */
struct hold_times arrival_hold(int fd, uint32_t events, uint64_t now_ns);

#endif
