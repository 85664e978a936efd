/* SPDX-License-Identifier: MIT */
/* libc's resolver state, which every thread has for itself (`_res`). */
#ifndef SHUNT_SHIM_RES_STATE_H
#define SHUNT_SHIM_RES_STATE_H

#include <stdbool.h>

/* Has the program changed the calling thread's, so that another thread would ask other servers, or
 * in another way? Reads the resolver's configuration where it must; allocates. */
bool res_state_is_changed(void);

/* For a thread that begins: it has none yet. glibc gives it what is left on its stack, after a
 * fork that of a thread which goes on in the parent, with the socket that it listens on. */
void res_state_forget(void);

#endif
