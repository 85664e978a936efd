/* SPDX-License-Identifier: MIT */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void terminal_complain(const char *format, ...)
{
	va_list arguments;

	fputs("shunt: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

void terminal_die_without_memory(void)
{
	terminal_complain("out of memory; free some and try again");
	exit(EXIT_OWN_FAILURE);
}

bool terminal_is_interactive(void)
{
	return isatty(STDOUT_FILENO);
}

void terminal_clear(void)
{
	fputs("\033[H\033[2J", stdout);
}

bool terminal_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (errno != EPIPE)
		terminal_complain("cannot write the output: %s; check where it goes",
				strerror(errno));
	return false;
}

bool terminal_wait(int milliseconds)
{
	/* Without any event asked for, only a reader that went away wakes it. */
	struct pollfd output = { .fd = STDOUT_FILENO };

	return poll(&output, 1, milliseconds) <= 0;
}
