/* SPDX-License-Identifier: MIT */
/* The words that both tables and JSON use for what a cell or an event holds. */
#ifndef SHUNT_CLI_LABEL_H
#define SHUNT_CLI_LABEL_H

#include <stdbool.h>

#include "core/settings.h"
#include "core/snapshot.h"

#define LABEL_SIZE 512

/* Into `text` of LABEL_SIZE, and returned. */
const char *label_target(const struct cell_snapshot *cell, char *text);  /* "pay.internal:443" */
const char *label_address(const struct cell_snapshot *cell, char *text); /* "" where it has none */
const char *label_state(const struct cell_snapshot *cell, char *text);   /* "open, forced" */
const char *label_retry(const struct cell_snapshot *cell, char *text);   /* "4.2s", "now", "-" */

/* "3", "3 of 7 by hand". */
const char *label_in_flight(const struct cell_snapshot *cell, char *text);

/* ", concurrency 7 by hand", or "" where rules say how many calls may be in flight. */
const char *label_by_hand(const struct cell_snapshot *cell, char *text);

/* "PAY pay.internal:443 (10.1.2.3)": a cell named in a sentence. */
const char *label_cell(const struct cell_snapshot *cell, char *text);

/* "connection" or "lookup". Static. */
const char *label_kind(bool is_lookup);

/* "none", "open", "closed". Static. */
const char *label_force(enum force force);

/* True and *ret set where `word` is one of the three. */
bool label_read_force(const char *word, enum force *ret);

#endif
