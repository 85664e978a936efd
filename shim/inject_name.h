/* SPDX-License-Identifier: MIT */
/* Faults of lookups, in place of the real resolver functions: beneath the circuit of the name, its
 * timeout and its cache. */
#ifndef SHUNT_SHIM_INJECT_NAME_H
#define SHUNT_SHIM_INJECT_NAME_H

/* Puts them into the table of real functions. */
void inject_name_start(void);

#endif
