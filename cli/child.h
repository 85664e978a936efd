/* SPDX-License-Identifier: MIT */
/*
 * A command that runs as our child, and looks to its caller as if it ran in our place: it stays in
 * our process group, so that the terminal and pipelines treat it as before; signals that are sent
 * to us reach it; we stop when it stops; it is killed when we are; and we end as it ends.
 */
#ifndef SHUNT_CLI_CHILD_H
#define SHUNT_CLI_CHILD_H

#include <stdbool.h>

struct child_end {
	int wait_status; /* as of waitpid() */
	int failure;     /* the command could not be executed: exit with this; or 0 */
};

/*
 * Runs `execute` in a child, which is to exec and returns an exit status where it cannot. Blocks
 * until the child has ended. All signals stay blocked, and of our descriptors only standard error
 * stays open: whoever waits for the end of a pipe waits for the command alone. False, and errno,
 * where there is no child.
 */
bool child_run(int (*execute)(void *argument), void *argument, struct child_end *ret);

/* The exit status that says the same; does not return where the command died of a signal. */
int child_exit_status(int wait_status);

#endif
