/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/policy.h"

Test(policy, is_what_the_rule_says)
{
	struct settings settings = settings_default;
	struct circuit_policy policy;

	settings.sleep_ms = 1500;
	settings.probes = 3;
	settings.slow_ratio = 100000;
	policy = policy_of(&settings);
	cr_expect_eq(policy.sleep_ms, 1500);
	cr_expect_eq(policy.probes, 3);
	cr_expect_eq(policy.slow_ratio, UINT32_MAX, "slow calls were not asked for");
	settings.slow_ns = 1;
	cr_expect_eq(policy_of(&settings).slow_ratio, 100000);
}

Test(policy, garbage_is_clamped)
{
	struct settings settings;
	struct circuit_policy policy;

	memset(&settings, 0xff, sizeof(settings));
	policy = policy_of(&settings);
	cr_expect_leq(policy.sleep_ms, SETTINGS_MAX_MS);
	cr_expect_leq(policy.lease_ms, SETTINGS_MAX_MS);
	cr_expect_leq(policy.probes, CIRCUIT_MAX_PROBES);
	settings.probes = 0;
	cr_expect_eq(policy_of(&settings).probes, 1);
}

Test(policy, rejected_probes_are_bad_where_rejects_count)
{
	struct settings settings = settings_default;

	cr_expect_eq(policy_probe_end(&settings, OUTCOME_SUCCESS), PROBE_OK);
	cr_expect_eq(policy_probe_end(&settings, OUTCOME_TIMEOUT), PROBE_BAD);
	cr_expect_eq(policy_probe_end(&settings, OUTCOME_UNUSED), PROBE_UNUSED);
	cr_expect_eq(policy_probe_end(&settings, OUTCOME_CANCELLED), PROBE_NEUTRAL);
	settings.rejects_count = true;
	cr_expect_eq(policy_probe_end(&settings, OUTCOME_REJECTED), PROBE_BAD);
	settings.rejects_count = false;
	cr_expect_eq(policy_probe_end(&settings, OUTCOME_REJECTED), PROBE_UNUSED);
}
