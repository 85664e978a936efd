/* SPDX-License-Identifier: MIT */
#include "shim/bound.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "core/clock.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/real.h"
#include "shim/signals.h"

#define SECOND_US 1000000ull
#define TICK_US   10000ull /* of the slowest kernel */

static bool is_blocking(int fd)
{
	long flags = raw_syscall(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

static bool option_read(int fd, int option, uint64_t *ret_us)
{
	struct timeval time = { 0 };
	uint32_t size = sizeof(time);

	if (raw_syscall(SYS_getsockopt, fd, SOL_SOCKET, option, (long)&time, (long)&size, 0))
		return false;
	*ret_us = (uint64_t)time.tv_sec * SECOND_US + (uint64_t)time.tv_usec;
	return true;
}

static bool option_write(int fd, int option, uint64_t us)
{
	struct timeval time = {
		.tv_sec = (time_t)(us / SECOND_US),
		.tv_usec = (suseconds_t)(us % SECOND_US),
	};

	return !raw_syscall(SYS_setsockopt, fd, SOL_SOCKET, option, (long)&time, sizeof(time), 0);
}

uint64_t bound_own_ns(int fd, int option)
{
	uint64_t own_us = 0;

	if (!own_calls_begin())
		return 0;
	if (!option_read(fd, option, &own_us))
		own_us = 0;
	own_calls_end();
	return own_us * 1000;
}

static uint64_t time_us(uint64_t duration_ns)
{
	return duration_ns / 1000 + TICK_US;
}

static void set(struct bound *bound, int fd, int option, uint64_t us)
{
	uint64_t own_us;

	if (!is_blocking(fd) || !option_read(fd, option, &own_us) || (own_us && own_us <= us) ||
			!option_write(fd, option, us))
		return;
	bound->own_us = own_us;
	bound->option = option;
}

void bound_begin(struct bound *bound, int fd, int option, uint64_t duration_ns)
{
	bound->option = 0;
	if (!own_calls_begin())
		return;
	set(bound, fd, option, time_us(duration_ns));
	own_calls_end();
}

bool bound_goes_on(const struct bound *bound, int fd, uint64_t duration_ns)
{
	bool goes_on;

	if (bound->own_us || !own_calls_begin())
		return false;
	goes_on = !signals_may_interrupt() && option_write(fd, bound->option, time_us(duration_ns));
	own_calls_end();
	return goes_on;
}

void bound_end(const struct bound *bound, int fd)
{
	if (!bound_is_set(bound) || !own_calls_begin())
		return;
	option_write(fd, bound->option, bound->own_us);
	own_calls_end();
}

static bool may_await(int fd, uint64_t duration_ns, uint64_t *ret_own_us)
{
	bool may;

	if (!own_calls_begin())
		return false;
	may = is_blocking(fd) && option_read(fd, SO_RCVTIMEO, ret_own_us) &&
			(!*ret_own_us || *ret_own_us > duration_ns / 1000);
	own_calls_end();
	return may;
}

/* The kernel never lets a call go on that the program itself has bounded. */
static bool is_interrupted(uint64_t own_us)
{
	return own_us || signals_may_interrupt();
}

enum bound_waited bound_await(int fd, uint64_t duration_ns)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	struct timespec time = clock_timespec(duration_ns);
	int error = errno, result;
	uint64_t own_us = 0;

	if (!may_await(fd, duration_ns, &own_us))
		return BOUND_READY;
	/* Libc's: somebody may want to cancel the recv. */
	result = real()->ppoll(&entry, 1, &time, NULL);
	if (result < 0 && errno == EINTR) {
		if (is_interrupted(own_us))
			return BOUND_INTERRUPTED;
		result = 0;
	}
	errno = error;
	return result ? BOUND_READY : BOUND_AGAIN;
}
