/* SPDX-License-Identifier: MIT */
#include "shim/socket_wait.h"

#include <errno.h>
#include <poll.h>

#include "core/clock.h"
#include "shim/below.h"
#include "shim/own_call.h"
#include "shim/signals.h"

/* The kernel never lets a call go on that has a time of its own. */
static bool goes_on(int error, bool has_own_time)
{
	return error == EINTR && !has_own_time && !signals_may_interrupt();
}

/* Libc's: somebody may want to cancel the call. 0 where the time is over. */
static int wait(struct pollfd *entry, const struct timespec *rest, int *ret_error)
{
	int kept = errno, result = below()->ppoll(entry, 1, rest, NULL);

	*ret_error = result < 0 ? errno : 0;
	errno = kept;
	return result;
}

int socket_wait(int fd, uint64_t end_ns)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN | POLLRDHUP };
	int result, error;

	do {
		struct timespec rest = clock_timespec(clock_elapsed_ns(clock_now_ns(), end_ns));

		result = wait(&entry, end_ns ? &rest : NULL, &error);
	} while (error && goes_on(error, end_ns));
	return result ? error : EAGAIN;
}

bool socket_sleep(int fd, uint64_t until_ns, bool has_own_time)
{
	struct pollfd entry = { .fd = fd };
	int result = 0, error = 0;

	while (result <= 0 && (!error || goes_on(error, has_own_time))) {
		uint64_t rest_ns = clock_elapsed_ns(clock_now_ns(), until_ns);
		struct timespec rest = clock_timespec(rest_ns);

		/* Who sets a filter does not wait for those who sleep. */
		if (!rest_ns || own_calls_are_forbidden())
			return true;
		result = wait(&entry, &rest, &error);
	}
	return error != EINTR;
}
