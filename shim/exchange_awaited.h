/* SPDX-License-Identifier: MIT */
/*
 * Since when an exchange awaits its peer, and the end of one that awaited too long. All but the
 * waits is for connections with EXCHANGE_DEADLINE. As the exchange itself it knows no sockets and
 * no clock.
 */
#ifndef SHUNT_SHIM_EXCHANGE_AWAITED_H
#define SHUNT_SHIM_EXCHANGE_AWAITED_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/exchange_state.h"

/*
 * Since when the peer lets the program wait: the attempt began, or the last byte was taken of what
 * it has to answer to. 0: it owes nothing. Where that cannot be told (it may speak first; in TLS it
 * may have answered) it owes what the program sits and waits for, in a recv, or a poll or select of
 * this descriptor alone.
 */
uint64_t exchange_awaited_since_ns(const struct exchange *exchange);

/* A recv, or a poll or select that named the descriptor, begins. Need not be told, and what it
 * began need not return: where it is told, a wait counts from its beginning. */
void exchange_wait_begins(struct exchange *exchange, uint64_t now_ns);

/* It returned, whether its beginning was told or not. */
void exchange_wait_ends(struct exchange *exchange, uint64_t began_ns, uint64_t now_ns);

/* The kernel is known to have moved something at that time. */
void exchange_moved(struct exchange *exchange, uint64_t now_ns);

/*
 * Ends the open call because its deadline passed; any thread may. First exchange_expiring() marks
 * it, false where none is open; then the caller looks at its deadline and whatever it wants to know
 * of it; then exchange_expire() ends it, if it still is the very call. `is_enforced`: and the
 * connection is dead.
 */
bool exchange_expiring(struct exchange *exchange);
struct exchange_step exchange_expire(struct exchange *exchange, bool is_enforced);

#endif
