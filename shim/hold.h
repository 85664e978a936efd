/* SPDX-License-Identifier: MIT */
/*
 * Readiness that is held back: a descriptor that the kernel calls ready, and that poll, select and
 * epoll shall not, before it is time. Nobody's thread sleeps for it.
 *
 * poll and select wait on a copy without what is held, with their timeout cut to the earliest time
 * at which something is let go. An event that epoll reports and that is to be held is taken out of
 * the answer, and its registration out of the epoll set (shim/withheld.h), to be given back in
 * time, so that whoever waits by then is woken, once.
 *
 * A reading half is EPOLLIN, PRI, RDHUP, HUP and ERR, a writing half EPOLLOUT: while one is held
 * the other goes on being reported.
 */
#ifndef SHUNT_SHIM_HOLD_H
#define SHUNT_SHIM_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/withheld.h"

/* From now on waits ask `ask` about descriptors of fd_table that are connections. Replaces entries
 * of the table of real functions, after below_start(). False without memory. At most once; hooks
 * may run meanwhile. */
bool hold_start(hold_ask *ask);

#endif
