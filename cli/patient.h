/* SPDX-License-Identifier: MIT */
/* A process that is looked into: what it is, and what it was told at its start. */
#ifndef SHUNT_CLI_PATIENT_H
#define SHUNT_CLI_PATIENT_H

#include <limits.h>
#include <stdbool.h>

#include "cli/process.h"
#include "core/config.h"
#include "core/segment.h"

struct patient {
	struct process process;
	struct config config;
	char library[PATH_MAX]; /* ours; "" for none */
	char segment_path[SEGMENT_PATH_SIZE]; /* where its segment should be, as it sees it */
	char segment_file[PATH_MAX];          /* the same, as we see it */
};

/* Is there a process of that number? */
bool patient_exists(const char *number);

/* False, after a complaint, where we may not look into it. *patient is large: keep it static. */
bool patient_open(const char *number, struct patient *patient);

void patient_close(struct patient *patient);

#endif
