/* SPDX-License-Identifier: MIT */
#include "core/policy.h"

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

struct circuit_policy policy_of(const struct settings *settings)
{
	return (struct circuit_policy){
			.sleep_ms = at_most(settings->sleep_ms, SETTINGS_MAX_MS),
			.lease_ms = at_most(settings->lease_ms, SETTINGS_MAX_MS),
			.probes = settings->probes == 0
						  ? 1
						  : at_most(settings->probes, CIRCUIT_MAX_PROBES),
			.probes_ratio = settings->probes_ratio,
			.errors_ratio = settings->errors_ratio,
			.slow_ratio = settings->slow_ns != 0 ? settings->slow_ratio : UINT32_MAX,
			.backoff_factor_thousandths = settings->backoff_factor_thousandths,
			.backoff_max_ms = at_most(settings->backoff_max_ms, SETTINGS_MAX_MS),
			.judges_by_rate = settings->half_open == HALF_OPEN_RATE,
			.releases_neutral = settings->neutral == NEUTRAL_RELEASE,
	};
}

enum probe_end policy_probe_end(const struct settings *settings, enum outcome outcome)
{
	switch (outcome) {
	case OUTCOME_SUCCESS:
		return PROBE_OK;
	case OUTCOME_FAILURE:
	case OUTCOME_TIMEOUT:
		return PROBE_BAD;
	case OUTCOME_REJECTED:
		return settings->rejects_count ? PROBE_BAD : PROBE_UNUSED;
	case OUTCOME_UNUSED:
		return PROBE_UNUSED;
	default:
		return PROBE_NEUTRAL;
	}
}
