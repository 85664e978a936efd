/* SPDX-License-Identifier: MIT */
/* What checks say: one line each, and the worst of them. */
#ifndef SHUNT_CLI_REPORT_H
#define SHUNT_CLI_REPORT_H

#include <limits.h>
#include <stdbool.h>

#define REPORT_LINE_SIZE (2 * PATH_MAX + 1024)

enum verdict {
	VERDICT_OK,
	VERDICT_WARN, /* it works, but not as one may think; or it cannot be told */
	VERDICT_NO,   /* it cannot work */
};

struct report {
	/* NULL to print "ok    ...", "warn  ..." and "no    ..." to standard output. */
	void (*take)(struct report *report, enum verdict verdict, const char *line);
	void *taker;
	bool only_no; /* what is less than VERDICT_NO is left out */
	enum verdict worst;
};

/* Formats as printf(). */
void report_line(struct report *report, enum verdict verdict, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

#endif
