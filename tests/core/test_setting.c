/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/setting.h"

/* What a rule that sets nothing does: docs/BEHAVIOUR.md. */
Test(setting, by_default_a_rule_breaks_circuits_and_isolates_nothing)
{
	cr_expect(settings_default.enabled);
	cr_expect_eq(settings_default.volume, 20);
	cr_expect_eq(settings_default.errors_ratio, RATIO_ONE / 2);
	cr_expect_eq(settings_default.timeout_ns, 0);
	cr_expect_eq(settings_default.concurrency, 0);
	cr_expect_eq(settings_default.connections, 0);
	cr_expect_eq(settings_default.fallback.address.family, 0);
	cr_expect_eq(settings_default.resolve_timeout_ns, 0);
	cr_expect_eq(settings_default.resolve_cache_ns, 0);
	cr_expect_eq(settings_default.resolve_stale_ns, 0);
}
