/* SPDX-License-Identifier: MIT */
#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const verdicts[] = {
	[VERDICT_OK] = "ok",
	[VERDICT_WARN] = "warn",
	[VERDICT_NO] = "no",
};

/* Names of files hold any bytes; a line stays a line. */
static void make_printable(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < ' ' || *line == '\x7f')
			*line = '?';
	}
}

void report_line(struct report *report, enum verdict verdict, const char *format, ...)
{
	char line[REPORT_LINE_SIZE];
	va_list arguments;

	if (report->only_no && verdict != VERDICT_NO)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	make_printable(line);
	if (verdict > report->worst)
		report->worst = verdict;
	if (report->take)
		report->take(report, verdict, line);
	else
		printf("%-6s%s\n", verdicts[verdict], line);
}
