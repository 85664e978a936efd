/* SPDX-License-Identifier: MIT */
/*
 * What a breaker rule may set. One table (settings.c) is read by the environment, the file, `check`,
 * `--help` and the man page.
 */
#ifndef SHUNT_CORE_SETTINGS_H
#define SHUNT_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/window.h"

#define SETTINGS_MAX_MS 86400000u /* sleep, lease, backoff: at most one day */
#define RATIO_ONE 1000000u        /* ratios are parts per million: 50% is 500000 */

enum half_open_mode { HALF_OPEN_ANY, HALF_OPEN_RATE };
enum neutral_mode { NEUTRAL_REOPEN, NEUTRAL_RELEASE };
enum force { FORCE_NONE, FORCE_OPEN, FORCE_CLOSED };
enum guard { GUARD_EXCHANGE, GUARD_CONNECT };
enum per { PER_ADDRESS, PER_HOST, PER_RULE };

/* A set of errno values (bit = errno) and of EAI_* values (bit = -EAI_x), for ignore= and fail=. */
struct error_set {
	uint64_t errnos[3]; /* 0..191 */
	uint64_t eais[2];   /* 0..127 */
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
	enum half_open_mode half_open;
	enum neutral_mode neutral;
	enum force force;
	enum guard guard;
	enum per per;
	int refuse_errno;         /* `error`: what a refused connect returns */
	bool enabled;
	bool rejects_count;
	struct error_set ignore, fail;
};

/* The documented defaults. */
extern const struct settings settings_default;

/* One row of the table. */
struct setting {
	const char *name;
	const char *default_text;
	const char *meaning;
};

/* The rows in documented order; *ret_count of them. Static. */
const struct setting *settings_table(size_t *ret_count);

/*
 * Reads one `name=value`. True and *settings changed; or false, *settings untouched, and in `error`
 * (`size` bytes, always terminated) the tail of the message: "sleep: expected a duration such as
 * 250ms, 5s or 1m, got '5'", with the nearest known name where the name is unknown.
 */
bool settings_apply(struct settings *settings, const char *name, const char *value, char *error,
		size_t size);

/* What follows from several settings: an unset lease is the sleep window, and so on. Call once after
 * the last settings_apply(). False and `error` filled where settings contradict each other. */
bool settings_finish(struct settings *settings, char *error, size_t size);

bool error_set_has_errno(const struct error_set *set, int error);
bool error_set_has_eai(const struct error_set *set, int eai);

#endif
