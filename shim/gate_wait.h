/* SPDX-License-Identifier: MIT */
/* Waits for more than one descriptor, by the gate. Keeps errno; none of them blocks, locks or
 * allocates. */
#ifndef SHUNT_SHIM_GATE_WAIT_H
#define SHUNT_SHIM_GATE_WAIT_H

#include <stdint.h>

#include "shim/fd_table.h"

/* poll, select with a timeout that is not 0: the time before it, or 0 where no connection exists;
 * to be handed to gate_waited() for each connection that was named for reading. */
uint64_t gate_wait_clock(void);

/* Before one of them that names this descriptor alone. */
void gate_wait_begins(int fd);
void gate_waited(struct connection *connection, uint64_t began_ns);

#endif
