/* SPDX-License-Identifier: MIT */
#include "cli/label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

static const char *const forces[] = {
	[FORCE_NONE] = "none",
	[FORCE_OPEN] = "open",
	[FORCE_CLOSED] = "closed",
};

#define FORCE_COUNT (sizeof(forces) / sizeof(forces[0]))

const char *label_target(const struct cell_snapshot *cell, char *text)
{
	snapshot_target(cell, text, LABEL_SIZE);
	return text;
}

const char *label_address(const struct cell_snapshot *cell, char *text)
{
	text[0] = '\0';
	if (cell->key.address.family != 0)
		address_format(&cell->key.address, text);
	return text;
}

const char *label_state(const struct cell_snapshot *cell, char *text)
{
	snprintf(text, LABEL_SIZE, "%s%s", circuit_state_name(cell->state),
			cell->force == FORCE_NONE ? "" : ", forced");
	return text;
}

const char *label_retry(const struct cell_snapshot *cell, char *text)
{
	if (!cell->has_retry)
		text_copy(text, LABEL_SIZE, "-");
	else if (cell->retry_in_ms == 0)
		text_copy(text, LABEL_SIZE, "now");
	else
		snprintf(text, LABEL_SIZE, "%" PRIu64 ".%" PRIu64 "s", cell->retry_in_ms / 1000,
				cell->retry_in_ms % 1000 / 100);
	return text;
}

const char *label_in_flight(const struct cell_snapshot *cell, char *text)
{
	if (cell->concurrency == 0)
		snprintf(text, LABEL_SIZE, "%" PRIu64, cell->in_flight);
	else if (cell->concurrency == CELL_UNLIMITED)
		snprintf(text, LABEL_SIZE, "%" PRIu64 ", no limit by hand", cell->in_flight);
	else
		snprintf(text, LABEL_SIZE, "%" PRIu64 " of %" PRIu32 " by hand", cell->in_flight,
				cell->concurrency);
	return text;
}

const char *label_by_hand(const struct cell_snapshot *cell, char *text)
{
	text[0] = '\0';
	if (cell->concurrency == CELL_UNLIMITED)
		snprintf(text, LABEL_SIZE, ", concurrency off by hand");
	else if (cell->concurrency != 0)
		snprintf(text, LABEL_SIZE, ", concurrency %" PRIu32 " by hand", cell->concurrency);
	return text;
}

const char *label_cell(const struct cell_snapshot *cell, char *text)
{
	char target[LABEL_SIZE], address[LABEL_SIZE];
	const char *place = label_address(cell, address);

	if (cell->key.kind == CELL_LOOKUP)
		place = "lookup";
	label_target(cell, target);
	snprintf(text, LABEL_SIZE, "%s %.255s%s%s%s", cell->key.name, target, *place ? " (" : "",
			place, *place ? ")" : "");
	return text;
}

const char *label_kind(bool is_lookup)
{
	return is_lookup ? "lookup" : "connection";
}

const char *label_force(enum force force)
{
	return (size_t)force < FORCE_COUNT ? forces[force] : "none";
}

bool label_read_force(const char *word, enum force *ret)
{
	for (size_t i = 0; i < FORCE_COUNT; i++) {
		if (strcmp(word, forces[i]) == 0) {
			*ret = (enum force)i;
			return true;
		}
	}
	return false;
}
