/* SPDX-License-Identifier: MIT */
/*
 * What a guarded call does besides on a connection whose calls have deadlines (EXCHANGE_DEADLINE):
 * the timer is told, blocking connects are bounded by the socket's own option, and blocking recvs,
 * where no timer thread may run, by a wait; and once a deadline has passed the connection answers
 * for itself. Makes system calls, none once a filter was seen. Async-signal-safe; keeps errno
 * unless it says that it sets it.
 */
#ifndef SHUNT_SHIM_TIMED_H
#define SHUNT_SHIM_TIMED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/bound.h"
#include "shim/fd_table.h"

enum timed_answer {
	TIMED_GOES_ON,     /* the real call is made */
	TIMED_ANSWERED,    /* it is not: the deadline has passed, errno is ETIMEDOUT */
	TIMED_INTERRUPTED, /* it is not: a signal came, errno is EINTR */
	TIMED_ANOTHER      /* fd names another file by now: the connection is forgotten, and the
			    * call none of ours */
};

/* Of a connection whose deadline may have passed. */
enum timed_answer timed_answer(struct connection *connection, int fd);

/* A permit was given for an attempt: before exchange_begin(). The rule may have no timeout. */
void timed_begin(struct connection *connection, int fd);

/* And after it: the timer is told. */
void timed_watch(struct connection *connection);

/* Around the real connect. The second returns what connect shall, with errno. */
void timed_connect(struct connection *connection, int fd, struct bound *bound);
int timed_connected(struct connection *connection, int fd, const struct bound *bound, int result);

/* By errno, which is kept: a bounded connect was interrupted, or is pending, where the program's
 * own would have gone on. It shall be made again. */
bool timed_connect_goes_on(struct connection *connection, int fd, const struct bound *bound);

/* Around a send. The second needs the first's TIMED_GOES_ON; it returns what send shall, with
 * errno. */
enum timed_answer timed_send(struct connection *connection, int fd);
ssize_t timed_sent(struct connection *connection, ssize_t result);

/* Around a recv whose beginning the exchange was told; `waits` false: by its flags it does not. The
 * second returns what recv shall, with errno. */
enum timed_answer timed_receive(struct connection *connection, int fd, bool waits);
ssize_t timed_received(const struct connection *connection, ssize_t result);

/* Something began that may make a deadline run: a call, a wait. */
void timed_expect(struct connection *connection);

#endif
