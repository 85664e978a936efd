/* SPDX-License-Identifier: MIT */
/*
 * What a breaker rule may set. One table is read by the environment, the file, `check`, `--help`
 * and the man page.
 */
#ifndef SHUNT_CORE_SETTING_H
#define SHUNT_CORE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/address.h"
#include "core/error_set.h"
#include "core/window.h"

#define SETTINGS_MAX_MS 86400000u /* sleep, lease, backoff: at most one day */
#define RATIO_ONE 1000000u        /* ratios are parts per million: 50% is 500000 */

enum half_open_mode { HALF_OPEN_ANY, HALF_OPEN_RATE };
enum neutral_mode { NEUTRAL_REOPEN, NEUTRAL_RELEASE };
enum force { FORCE_NONE, FORCE_OPEN, FORCE_CLOSED };
enum guard { GUARD_EXCHANGE, GUARD_CONNECT };
enum per { PER_ADDRESS, PER_HOST, PER_RULE };

struct fallback {
	struct address address;
	uint16_t port;
};

struct settings {
	struct window_shape window;
	uint32_t errors_ratio;
	uint32_t volume;
	uint32_t sleep_ms;
	uint32_t lease_ms;        /* 0: a probe may stay unreported for ever */
	uint32_t probes;          /* 1..15 */
	uint32_t probes_ratio;    /* 0, or the share of calls that half-open admits instead */
	uint32_t consecutive;     /* 0: off */
	uint32_t slow_ratio;
	uint64_t slow_ns;         /* 0: off */
	uint32_t backoff_factor_thousandths; /* 0: off; 2 is 2000 */
	uint32_t backoff_max_ms;
	uint64_t abandon_ns;
	uint64_t timeout_ns;      /* 0: off, as everywhere below */
	uint32_t concurrency;
	uint32_t queue;
	uint64_t queue_wait_ns;
	uint32_t connections;
	uint32_t fallback_concurrency;
	struct fallback fallback; /* family 0: none */
	uint64_t resolve_timeout_ns;
	uint32_t resolve_pool, resolve_pool_max;
	uint32_t resolve_queue, resolve_queue_reject;
	uint64_t resolve_cache_ns, resolve_stale_ns;
	enum half_open_mode half_open;
	enum neutral_mode neutral;
	enum force force;
	enum guard guard;
	enum per per;
	int refuse_errno;         /* `error`: what a refused connect returns */
	bool enabled;
	bool rejects_count;
	struct error_set ignore, fail;
	uint64_t given; /* bit = row of the table that was set; defaults and presets yield to these
			 */
};

/* The documented defaults. */
extern const struct settings settings_default;

/* One row of the table. */
struct setting {
	const char *name;
	const char *default_text;
	const char *meaning;
	/* How it is read: NULL, or what was expected. */
	const char *(*read)(
			const struct setting *row, struct settings *settings, const char *value);
	size_t offset;            /* of its field */
	uint64_t low, high;       /* in the unit of `read` */
	const char *limits;       /* what was expected, where it is out of them */
	const char *const *words; /* what it may be, up to NULL; or NULL */
	bool can_be_off;          /* "off" is 0 */
	bool is_list;             /* names, with , + or | between them; given again it grows */
};

#endif
