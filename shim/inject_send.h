/* SPDX-License-Identifier: MIT */
/* In place of the real functions that send, for connections under faults; of datagrams see
 * shim/inject_datagram.h. */
#ifndef SHUNT_SHIM_INJECT_SEND_H
#define SHUNT_SHIM_INJECT_SEND_H

/* Puts them into the table of real functions. */
void inject_send_start(void);

#endif
