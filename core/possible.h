/* SPDX-License-Identifier: MIT */
/*
 * Which errors a call can come to on an IPv4 or IPv6 socket, on Linux. A program may be given those
 * and no others: it need not know what to do with the rest. Pure.
 */
#ifndef SHUNT_CORE_POSSIBLE_H
#define SHUNT_CORE_POSSIBLE_H

#include <stdbool.h>
#include <stddef.h>

/* Bits: a fault may strike several. */
enum possible_call { POSSIBLE_CONNECT = 1, POSSIBLE_SEND = 2, POSSIBLE_RECV = 4 };

/* Which of `calls` can fail with this errno on a blocking or non-blocking socket: a subset of them.
 * EAGAIN of a blocking one needs a timeout of its own (SO_RCVTIMEO), which is not looked at. */
unsigned int possible_calls(unsigned int calls, bool is_datagram, bool blocks, int error);

/* The nearest name of an error that one of `calls` can fail with, or NULL. Static. */
const char *possible_nearest(unsigned int calls, bool is_datagram, const char *name);

/* "ECONNREFUSED, ETIMEDOUT or EHOSTUNREACH": some that one of `calls` can fail with, the likeliest
 * first. */
void possible_list(unsigned int calls, bool is_datagram, char *ret, size_t size);

#endif
