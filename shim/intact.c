/* SPDX-License-Identifier: MIT */
#include "shim/intact.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "shim/own_call.h"
#include "shim/raw.h"

/* Nothing is woken or moved by it. */
bool is_intact(const void *word, uint32_t value)
{
	static uint32_t nobody;
	long result;

	if (!own_calls_begin())
		return true;
	result = raw_syscall(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
			(long)&nobody, (long)value);
	own_calls_end();
	return result != -EAGAIN && result != -EFAULT;
}
