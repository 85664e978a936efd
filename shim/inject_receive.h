/* SPDX-License-Identifier: MIT */
/* In place of the real functions that receive, for connections under faults; of datagrams see
 * shim/inject_datagram.h. */
#ifndef SHUNT_SHIM_INJECT_RECEIVE_H
#define SHUNT_SHIM_INJECT_RECEIVE_H

/* Puts them into the table of real functions. */
void inject_receive_start(void);

#endif
