/* SPDX-License-Identifier: MIT */
#include "shim/socket_wait.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/signals.h"

/* The kernel never lets a call go on that has a time of its own. */
static bool goes_on(int error, uint64_t end_ns)
{
	return error == EINTR && !end_ns && !signals_may_interrupt();
}

int socket_wait(int fd, uint64_t end_ns)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN | POLLRDHUP };
	int kept = errno, result, error;

	do {
		struct timespec rest = clock_timespec(clock_elapsed_ns(clock_now_ns(), end_ns));

		/* Libc's: somebody may want to cancel the call. */
		result = below()->ppoll(&entry, 1, end_ns ? &rest : NULL, NULL);
		error = result < 0 ? errno : 0;
	} while (error && goes_on(error, end_ns));
	errno = kept;
	return result ? error : EAGAIN;
}
