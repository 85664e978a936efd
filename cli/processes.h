/* SPDX-License-Identifier: MIT */
/* Which running processes still share a segment that was removed. Reads /proc. */
#ifndef SHUNT_CLI_PROCESSES_H
#define SHUNT_CLI_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/seat.h"

/*
 * Counts processes of this user that have a segment mapped that once stood at `path`, or was made
 * to, and is another file than `inode` (0: there is no file now). The first `most` of them go to
 * `ret`. What cannot be read is passed over.
 */
size_t processes_on_removed_segment(const char *path, ino_t inode, pid_t *ret, size_t most);

/* Does the process that took that seat live, waiting to be reaped apart? True where in doubt. */
bool process_is_alive(struct seat_owner owner);

#endif
