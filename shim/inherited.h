/* SPDX-License-Identifier: MIT */
/* Descriptors that were there before us: over exec, from a supervisor, from other constructors. */
#ifndef SHUNT_SHIM_INHERITED_H
#define SHUNT_SHIM_INHERITED_H

/* Tells fd_table which open descriptors are stream sockets, so that no hook ever has to ask the
 * kernel. Once, at start, after fd_table_start(). Without /proc nothing is told: those sockets are
 * not guarded then. Keeps no descriptor; errno is not kept. */
void inherited_tell(void);

#endif
