/* SPDX-License-Identifier: MIT */
#include "cli/filter.h"

#include <stdio.h>

/* Asked of a file, as the library does: a filter may forbid to ask by prctl(). */
static bool is_filtered(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned int mode = 0;
	char line[256];

	if (!status)
		return false;
	while (fgets(line, sizeof(line), status) && sscanf(line, "Seccomp: %u", &mode) != 1)
		;
	fclose(status);
	return mode != 0;
}

bool filter_describe(const struct config *config, char *ret)
{
	if (!is_filtered())
		return false;
	snprintf(ret, FILTER_TEXT_SIZE,
			"a seccomp filter is in force here: no log and no timer thread under it%s; "
			"circuits work, and 'shunt events' shows what they do",
			config->log == LOG_OFF ? "" : ", so SHUNT_LOG stays without effect");
	return true;
}
