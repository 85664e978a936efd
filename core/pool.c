/* SPDX-License-Identifier: MIT */
#include "core/pool.h"

enum pool_answer pool_admit(struct pool_shape shape, struct pool_load load)
{
	if (shape.queue > 0 && load.queued >= shape.queue_reject)
		return POOL_REJECTS;
	if (load.idle > 0)
		return POOL_HANDS_OVER;
	if (load.threads < shape.core)
		return POOL_STARTS;
	if (load.queued < shape.queue)
		return POOL_QUEUES;
	return load.threads < shape.max ? POOL_STARTS : POOL_REJECTS;
}
