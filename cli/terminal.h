/* SPDX-License-Identifier: MIT */
/* Where people and scripts meet the command: complaints on standard error, output that is checked,
 * waiting for more, exit statuses. */
#ifndef SHUNT_CLI_TERMINAL_H
#define SHUNT_CLI_TERMINAL_H

#include <stdbool.h>

/* Exit statuses of our own; `run` otherwise ends as its command does. */
#define EXIT_PROBLEMS 1 /* check: something is wrong with the rules */
#define EXIT_OWN_FAILURE 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

/* "shunt: ..." and a newline on standard error; formats as printf(). */
void terminal_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains that there is no memory and ends the command. */
_Noreturn void terminal_die_without_memory(void);

/* Is standard output a terminal? */
bool terminal_is_interactive(void);

/* An empty screen with the cursor at its top left. */
void terminal_clear(void);

/* Everything printed so far is out. False where it cannot be written; complains unless it is only
 * that nobody reads any more. */
bool terminal_flush(void);

/* Blocks for `milliseconds`. False, at once, when nobody reads standard output any more. */
bool terminal_wait(int milliseconds);

#endif
