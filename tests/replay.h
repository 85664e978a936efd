/* SPDX-License-Identifier: MIT */
/* Recorded stories, told again to core or to the exchange model. */
#ifndef SHUNT_TESTS_REPLAY_H
#define SHUNT_TESTS_REPLAY_H

#include <stdbool.h>

struct replay_tally {
	unsigned int passed, failed, skipped;
};

/*
 * Replays every line of the file at `path`, adds to the tally, and names each failure and each skip
 * on stdout. False after a message on stderr ("FILE:LINE: what: expected X, got 'Y'") where the
 * file cannot be read or is not in the language.
 */
bool replay_scenarios(const char *path, struct replay_tally *tally);
bool replay_traces(const char *path, struct replay_tally *tally);

#endif
