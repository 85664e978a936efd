/* SPDX-License-Identifier: MIT */
/*
 * Readiness that is held back: a descriptor that the kernel calls ready, and that poll, select and
 * epoll shall not, before it is time. Nobody's thread sleeps for it.
 *
 * poll and select wait on a copy without what is held, with their timeout cut to the earliest time
 * at which something is let go. An event that epoll reports and that is to be held is taken out of
 * the answer, its registration out of the epoll set (DEL, given back by ADD: MOD would go on to
 * report errors, fails with EPOLLEXCLUSIVE, and arms a fired EPOLLONESHOT again), and the timer
 * thread gives it back in time, so that whoever waits by then is woken, once. Meanwhile epoll_ctl()
 * on that pair is answered from our table.
 */
#ifndef SHUNT_SHIM_HOLD_H
#define SHUNT_SHIM_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The kernel calls fd ready for `events` (EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP): until
 * when (CLOCK_MONOTONIC) is each half to be held? 0: not at all. Also asked, with all of them, when
 * a wait begins. Async-signal-safe; may be asked by any thread, often.
 */
struct hold_times {
	uint64_t in_ns, out_ns;
};
typedef struct hold_times hold_ask(int fd, uint32_t events, uint64_t now_ns);

/* From now on waits ask `ask` about descriptors of fd_table that are connections. Replaces entries
 * of the table of real functions. False without memory. */
bool hold_start(hold_ask *ask);

/* The timer thread's: gives back what is due; when to look again, 0: nothing is held. */
uint64_t holds_serve(uint64_t now_ns);

/* In a forked child: the epoll sets are shared with the parent, who gives back what he took. */
void hold_forked(void);

#endif
