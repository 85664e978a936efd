/* SPDX-License-Identifier: MIT */
/* The time of one wait, which may be made of several: until its own end, or until something that is
 * held is due. */
#ifndef SHUNT_SHIM_HOLD_WAIT_H
#define SHUNT_SHIM_HOLD_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define FOR_EVER UINT64_MAX

/* The end of a wait that begins now, of FOR_EVER too. */
uint64_t hold_wait_end_ns(uint64_t now_ns, uint64_t duration_ns);

/* A program's timeout: negative milliseconds and no timespec are FOR_EVER. False: the kernel
 * refuses it. */
uint64_t hold_wait_of_ms(int timeout);
bool hold_wait_of_timespec(const struct timespec *timeout, uint64_t *ret_ns);

/*
 * A round begins: gives back what is due in epoll sets, and makes sure that the rest will be: by
 * the timer thread, or else by this one. Until when to wait, `due_ns` (0: none) and `end_ns` being
 * the caller's own times; FOR_EVER.
 */
uint64_t hold_wait_until_ns(uint64_t due_ns, uint64_t end_ns, uint64_t now_ns);

/* From now until then, for poll and epoll (not too early), and for the rest. */
int hold_wait_ms(uint64_t until_ns, uint64_t now_ns);
struct timespec *hold_wait_timespec(uint64_t until_ns, uint64_t now_ns, struct timespec *room);
struct timeval *hold_wait_timeval(uint64_t until_ns, uint64_t now_ns, struct timeval *room);

#endif
