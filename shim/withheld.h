/* SPDX-License-Identifier: MIT */
/*
 * Registrations that are kept out of their epoll sets while readiness is held (shim/hold.h). DEL
 * takes one out and ADD gives it back: MOD would go on to report errors, fails with
 * EPOLLEXCLUSIVE, and arms a fired EPOLLONESHOT again. Where the program waits for one half that
 * is not held, the registration stays for that half. Meanwhile epoll_ctl() on the pair is answered
 * from here.
 *
 * What is due is given back by every wait that begins or ends (poll, select, epoll_wait), and by
 * the timer thread where there are other threads, which may be waiting already.
 */
#ifndef SHUNT_SHIM_WITHHELD_H
#define SHUNT_SHIM_WITHHELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "shim/expectation.h"
#include "shim/halves.h"

/*
 * The kernel calls fd ready for `events` (EPOLLIN, EPOLLOUT, EPOLLERR, ...), or, where they are 0,
 * there is no news and a wait begins or a hold ends: until when (CLOCK_MONOTONIC) is each half to
 * be held? 0 or past: not. What was held with news is held as long when asked again without.
 * Async-signal-safe; any thread may ask, often.
 */
typedef struct hold_times hold_ask(int fd, uint32_t events, uint64_t now_ns);

/* Whom to ask. False without memory. */
bool withheld_start(hold_ask *ask);

/* Asks, of a connection; anything else is not held. */
struct hold_times withheld_ask(int fd, uint32_t events, uint64_t now_ns);

/*
 * The set has reported this, and it is about fd: what of it to tell the program now. The rest is
 * kept out of the set until its time. 0: nothing. With EPOLLONESHOT one half cannot go on without
 * the other: what the kernel would tell of it in the meantime would arm it a second time.
 */
uint32_t withhold(int set, int fd, const struct epoll_event *event, uint64_t now_ns);

/* Is nothing of the pair in its set, so that it is not what the kernel reports (any more)? */
bool withheld_is_away(int set, int fd);

/* epoll_ctl() of a program on a pair that may be withheld. True: answered in *ret_result, 0 or a
 * negated errno. False: the kernel's to answer. With fd's lock held. */
bool withheld_answers(int set, int operation, int fd, const struct epoll_event *event,
		int *ret_result);

/* MOD of a pair that stayed for one half: it has gone to the kernel, all of it. With fd's lock. */
void withheld_returned(struct registration *registration);

/*
 * A call on fd was told to come again (EAGAIN) though the kernel would have moved something: an
 * edge that told of it is spent. Edge-triggered registrations of fd report it anew, to be held or
 * not as it is asked then; to others nothing is owed. Makes system calls, starts no thread;
 * async-signal-safe, keeps errno.
 */
void hold_again(int fd);

/* Gives back what is due; when to look again, 0: nothing is withheld. */
uint64_t holds_serve(uint64_t now_ns);
bool holds_exist(void);

/* A descriptor of a socket that has others, or may have some in another process, is about to be
 * closed or replaced: the kernel goes on to report the socket by it, and so nothing is kept out of
 * a set any more. Keeps errno. */
void holds_release_copy(int fd);

/* What it was held for is no more. Keeps errno. */
void holds_release_descriptor(int fd);

/* Gives back everything now: before a fork, the end of the process, and what forbids threads or
 * calls of our own. What is still to be held is taken out again when it is reported. */
void holds_release(void);

/* The same with calls of our own forbidden already, by this thread, which is about to set the
 * process's first filter. */
void holds_release_before_filter(void);

/* In a forked child: the epoll sets are shared with the parent, who gives back what he took. */
void hold_forked(void);

#endif
