/* SPDX-License-Identifier: MIT */
/*
 * One injected fault as a line of a report (`--report`), and a report read again (`--replay`):
 *
 *	{"rule": "REDIS", "connection": 3, "call": 1, "fault": "latency", "value": 300000000}
 *
 * Nothing in it depends on when or in which process it was: two runs of one seed compare equal,
 * those of threads once sorted. Pure, no allocation.
 */
#ifndef SHUNT_CORE_INJECTION_H
#define SHUNT_CORE_INJECTION_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/fault.h"

#define INJECTION_LINE_SIZE 256

struct injection {
	char rule[RULE_NAME_SIZE];
	struct fault_unit unit;
	enum fault_kind kind;
	uint64_t value;
};

/* How the file of a report is opened for writing; what is not a regular file then is none. */
#define INJECTION_REPORT_FLAGS                                                                     \
	(O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* With its newline; the length. */
size_t injection_format(const struct injection *injection, char ret[INJECTION_LINE_SIZE]);

/* One line, without its newline. NULL and *ret; or what was expected, static text. */
const char *injection_parse(const char *line, size_t length, struct injection *ret);

/* A report in memory of the caller's, sorted by injection_sort(). */
void injection_sort(struct injection *injections, size_t count);

/* What was injected there, or NULL. */
const struct injection *injection_find(const struct injection *injections, size_t count,
		const char *rule, struct fault_unit unit);

#endif
