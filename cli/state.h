/* SPDX-License-Identifier: MIT */
/* What this user's processes share, as the command sees it: the configuration of its own
 * environment, and the segment that it names. */
#ifndef SHUNT_CLI_STATE_H
#define SHUNT_CLI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/config.h"
#include "core/segment.h"
#include "core/snapshot.h"

#define STATE_REASON_SIZE 512
#define STATE_NOTES_MAX (CONFIG_MAX_PROBLEMS + 6 + SEGMENT_RULES * UNENFORCED_COUNT)
#define STATE_NOTE_SIZE 640

struct state {
	struct config config;
	bool is_own;                  /* of our environment */
	char path[SEGMENT_PATH_SIZE]; /* where the segment is or would be; "" with private state */
	struct segment *segment;      /* NULL: see reason */
	char reason[STATE_REASON_SIZE]; /* why there is none, and what to do about it */
	bool is_missing;              /* none was made yet: nothing is wrong */
	dev_t device;
	ino_t inode;
	pid_t removed_pids[8]; /* processes on a removed segment; more may be counted */
	size_t removed_count;
};

/* The environment without SHUNT_OFF: the kill switch is for programs, not for looking at them.
 * Static; entries are those of environ. */
char **state_environment(void);

/* The one state, read anew. Static. Never makes a segment. Where SHUNT_STATE cannot be read there
 * is none, though programs share the default one then. */
struct state *state_open(void);

/* Follows a segment that was made, replaced or removed since. True where it changed. */
bool state_refresh(struct state *state);

/* The same for another environment, whose entries end with NULL (or there are none: NULL). */
struct state *state_open_for(char *const environment[]);

/* The live cells in order of name and host, lookups first, then address and port; `ret` has room
 * for SEGMENT_CELLS. What dead processes held is given back before. */
size_t state_cells(const struct state *state, uint64_t now_ns, struct cell_snapshot *ret);

/* What people should know about all this; `ret` has room for STATE_NOTES_MAX. */
size_t state_notes(const struct state *state, char (*ret)[STATE_NOTE_SIZE]);

/* Can the log be written where SHUNT_LOG says? False, and why in `ret` (STATE_NOTE_SIZE), if not.
 */
bool state_log_is_writable(const struct config *config, char *ret);

/* Targets that found no free cell. */
uint64_t state_overflow(const struct state *state);

#endif
