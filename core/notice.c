/* SPDX-License-Identifier: MIT */
#include "core/notice.h"

#include <string.h>

__attribute__((cold, noinline)) void notice_write(struct event_ring *ring, const struct cell *cell,
		uint32_t pid, struct notice notice, uint64_t now_ns)
{
	const struct cell_key *key = &cell->key;
	struct event event = {
			.time_ns = now_ns,
			.kind = notice.kind,
			.pid = pid,
			.requests = (uint32_t)notice.sum.total,
			.errors = (uint32_t)notice.sum.errors,
			.detail = notice.detail,
			.is_lookup = key->kind == CELL_LOOKUP,
	};

	if (ring == NULL)
		return;
	memcpy(event.name, key->name, sizeof(event.name));
	event.name[sizeof(event.name) - 1] = '\0';
	cell_key_describe(key, event.target, sizeof(event.target));
	event_write(ring, &event);
}
