/* SPDX-License-Identifier: MIT */
#include "cli/fault_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t fault_counts_suppressed(const struct fault_counts *counts)
{
	uint64_t sum = 0;

	for (int reason = FAULT_STRIKES + 1; reason < FAULT_REASON_COUNT; reason++)
		sum += counts->suppressed[reason];
	return sum;
}

const char *fault_counts_reasons(const struct fault_counts *counts, char *ret)
{
	size_t length = 0;

	ret[0] = '\0';
	for (int reason = FAULT_STRIKES + 1; reason < FAULT_REASON_COUNT; reason++) {
		if (counts->suppressed[reason] > 0 && length < FAULT_COUNTS_SIZE)
			length += (size_t)snprintf(ret + length, FAULT_COUNTS_SIZE - length,
					"%s%" PRIu64 " %s", length ? ", " : "",
					counts->suppressed[reason],
					fault_reason_name((enum fault_reason)reason));
	}
	return ret;
}

/* Of one reason its number is that of all. */
static const char *only_reason(const struct fault_counts *counts, uint64_t suppressed)
{
	for (int reason = FAULT_STRIKES + 1; reason < FAULT_REASON_COUNT; reason++) {
		if (counts->suppressed[reason] == suppressed)
			return fault_reason_name((enum fault_reason)reason);
	}
	return NULL;
}

const char *fault_counts_describe(const struct fault_counts *counts, char *ret)
{
	uint64_t suppressed = fault_counts_suppressed(counts);
	const char *only = only_reason(counts, suppressed);
	char reasons[FAULT_COUNTS_SIZE];
	int length = snprintf(ret, FAULT_COUNTS_SIZE,
			"%" PRIu64 " call%s seen, %" PRIu64 " matched, %" PRIu64 " injected",
			counts->seen, counts->seen == 1 ? "" : "s", counts->matched,
			counts->injected);

	if (counts->unreported > 0)
		length += snprintf(ret + length, FAULT_COUNTS_SIZE - (size_t)length,
				", %" PRIu64 " of them not reported", counts->unreported);
	if (suppressed > 0)
		snprintf(ret + length, FAULT_COUNTS_SIZE - (size_t)length,
				", %" PRIu64 " suppressed (%.150s)", suppressed,
				only ? only : fault_counts_reasons(counts, reasons));
	return ret;
}
