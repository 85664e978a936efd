/* SPDX-License-Identifier: MIT */
/*
 * So many bytes a second, and in small pieces: a bucket of tokens that has one piece at first, so
 * that what is reported as ready moves something, and never holds more than a fifth of a second's.
 * Pure, lock-free; zeroed memory is a fresh one.
 */
#ifndef SHUNT_SHIM_PACE_H
#define SHUNT_SHIM_PACE_H

#include <stdatomic.h>
#include <stdint.h>

struct pace {
	_Atomic uint64_t paid_ns; /* what has moved is paid for until then; 0: nobody asked yet */
};

/* How many bytes may move now; 0 until there is a piece's worth. *ret_due_ns: when to ask again
 * where it is 0. */
uint64_t pace_room(struct pace *pace, uint64_t bytes_a_second, uint64_t now_ns,
		uint64_t *ret_due_ns);

/* They moved. */
void pace_take(struct pace *pace, uint64_t bytes_a_second, uint64_t bytes, uint64_t now_ns);

#endif
