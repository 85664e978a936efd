/* SPDX-License-Identifier: MIT */
/* What `run` does about faults: their report, its replay, and what was injected at the end. */
#ifndef SHUNT_CLI_FAULT_RUN_H
#define SHUNT_CLI_FAULT_RUN_H

#include <stdbool.h>

#include "cli/fault_tally.h"
#include "core/config.h"

struct fault_run {
	const char *report, *replay; /* files of the options, or NULL */
	bool requires_hits, is_verbose;
	/* After fault_run_begin(): */
	struct fault_tally tally;
	unsigned int replay_count; /* injections in the replay */
};

/* Must `run` stay, to tell at the end? */
bool fault_run_stays(const struct fault_run *run, const struct config *config);

/* Puts report, replay and the number of the run into the environment, and makes the report's file
 * empty. False after a complaint. */
bool fault_run_begin(struct fault_run *run, const struct config *config);

/* One line on standard error, where it is asked for. False where hits are required, and none was
 * there: then the line says so. */
bool fault_run_end(const struct fault_run *run);

#endif
