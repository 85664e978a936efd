/* SPDX-License-Identifier: MIT */
#include "core/setting.h"

#include <errno.h>

#define MS_NS 1000000ull

const struct settings settings_default = {
	.window = { .span_ns = 10000 * MS_NS, .buckets = 10 },
	.errors_ratio = RATIO_ONE / 2,
	.volume = 20,
	.sleep_ms = 5000,
	.lease_ms = 5000,
	.probes = 1,
	.slow_ratio = RATIO_ONE,
	.abandon_ns = 1000 * MS_NS,
	.half_open = HALF_OPEN_ANY,
	.neutral = NEUTRAL_REOPEN,
	.force = FORCE_NONE,
	.guard = GUARD_EXCHANGE,
	.per = PER_ADDRESS,
	.refuse_errno = ECONNREFUSED,
	.enabled = true,
	.rejects_count = true,
	.queue_wait_ns = 1000 * MS_NS,
	.fallback_concurrency = 10,
	.resolve_pool = 10,
	.resolve_pool_max = 10,
	.resolve_queue_reject = 5,
};
