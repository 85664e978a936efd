/* SPDX-License-Identifier: MIT */
/* What happened to a circuit, written to the ring that people read. */
#ifndef SHUNT_CORE_NOTICE_H
#define SHUNT_CORE_NOTICE_H

#include <stdint.h>

#include "core/cell.h"
#include "core/event.h"
#include "core/window.h"

struct notice {
	enum event_kind kind;
	uint32_t detail;       /* as struct event has it */
	struct window_sum sum; /* what was counted, where that decided */
};

/* `ring` may be NULL: nothing is recorded. Lock-free, async-signal-safe. */
void notice_write(struct event_ring *ring, const struct cell *cell, uint32_t pid,
		struct notice notice, uint64_t now_ns);

#endif
