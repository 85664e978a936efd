/* SPDX-License-Identifier: MIT */
/*
 * What came of a cell's calls: shares of errors and of slow calls in the window, failures in a row;
 * and whether they are enough to trip. Lock-free, allocates nothing, async-signal-safe. Counts of
 * an earlier epoch are not seen.
 */
#ifndef SHUNT_CORE_METER_H
#define SHUNT_CORE_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cell.h"
#include "core/settings.h"

/* The parts that are not for every call; use the functions below. */
void meter_record_rest(struct cell *cell, const struct settings *settings, uint32_t epoch,
		bool is_error, uint64_t duration_ns, uint64_t now_ns);
bool meter_trips_by_sums(const struct cell *cell, const struct settings *settings, uint32_t epoch,
		uint64_t now_ns);

/* Can a rule trip while there are no errors, or by more than their share? */
static inline bool meter_has_other_limits(const struct settings *settings)
{
	return settings->slow_ns != 0 || settings->consecutive != 0 || settings->errors_ratio == 0;
}

/* Strictly longer than `slow`, where that is set. */
static inline bool meter_is_slow(const struct settings *settings, uint64_t duration_ns)
{
	return settings->slow_ns != 0 && duration_ns > settings->slow_ns;
}

/* Counts one request. */
static inline void meter_record(struct cell *cell, const struct settings *settings, uint32_t epoch,
		bool is_error, uint64_t duration_ns, uint64_t now_ns)
{
	window_record(&cell->outcomes, &settings->window, epoch, now_ns, is_error);
	if (meter_has_other_limits(settings))
		meter_record_rest(cell, settings, epoch, is_error, duration_ns, now_ns);
}

/* Does what was counted trip a circuit that is closed in that epoch? An empty window never does. */
static inline bool meter_trips(const struct cell *cell, const struct settings *settings,
		uint32_t epoch, uint64_t now_ns)
{
	if (!meter_has_other_limits(settings) &&
			!window_may_have_errors(&cell->outcomes, &settings->window))
		return false;
	return meter_trips_by_sums(cell, settings, epoch, now_ns);
}

#endif
