/* SPDX-License-Identifier: MIT */
#include "shim/bound.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "shim/own_call.h"
#include "shim/raw.h"
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
