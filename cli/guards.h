/* SPDX-License-Identifier: MIT */
/* Which rule and which circuit a connection of another process is under. From outside, a name is
 * known only by the circuit that has the connection's address. */
#ifndef SHUNT_CLI_GUARDS_H
#define SHUNT_CLI_GUARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/connections.h"
#include "core/config.h"
#include "core/segment.h"
#include "core/snapshot.h"

#define GUARDS_TEXT_SIZE 640

struct guards {
	const struct config *config;      /* the process's own rules */
	struct cell_snapshot *cells;      /* of SEGMENT_CELLS; those for connections */
	size_t cell_count;
	bool has_cells; /* its segment could be read */
};

/* Takes the circuits of `segment` (NULL: it could not be read). */
void guards_begin(struct guards *guards, const struct config *config, struct segment *segment);

/* "under PAY (pay.internal:443): closed", or "not guarded: no rule matches", into `ret` of
 * GUARDS_TEXT_SIZE. True where it falls under a rule: whether the library saw it begin cannot be
 * told from outside. */
bool guards_describe(const struct guards *guards, const struct connection *connection, char *ret);

void guards_finish(struct guards *guards);

#endif
