/* SPDX-License-Identifier: MIT */
#include "shim/socket_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

/* After netinet/in.h; glibc's netinet/tcp.h lacks later fields, which are not used here. */
#include <netinet/tcp.h>

#include "core/clock.h"
#include "shim/own_call.h"
#include "shim/raw.h"

#define MS_NS     1000000ull
#define AGE_MOST_NS (3600 * CLOCK_SECOND_NS)

static long ask(long number, long a, long b, long c, long d, long e)
{
	long result;

	if (!own_calls_begin())
		return -EPERM;
	result = raw_syscall(number, a, b, c, d, e, 0);
	own_calls_end();
	return result;
}

bool socket_is_blocking(int fd)
{
	long flags = ask(SYS_fcntl, fd, F_GETFL, 0, 0, 0);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

uint32_t socket_readiness(int fd, uint32_t events)
{
	struct pollfd entry = { .fd = fd, .events = (short)events };
	struct timespec at_once = { 0 };

	if (ask(SYS_ppoll, (long)&entry, 1, (long)&at_once, 0, 0) <= 0)
		return 0;
	return (uint32_t)entry.revents;
}

static bool option_read(int fd, int level, int option, void *ret, uint32_t size)
{
	uint32_t length = size;

	return ask(SYS_getsockopt, fd, level, option, (long)ret, (long)&length) == 0;
}

static bool option_write(int fd, int level, int option, const void *value, uint32_t size)
{
	return ask(SYS_setsockopt, fd, level, option, (long)value, size) == 0;
}

uint64_t socket_data_age_ns(int fd)
{
	struct tcp_info info = { 0 };

	if (!option_read(fd, IPPROTO_TCP, TCP_INFO, &info, sizeof(info)))
		return 0;
	return info.tcpi_last_data_recv * MS_NS;
}

static bool real_time(struct timespec *ret)
{
	return ask(SYS_clock_gettime, CLOCK_REALTIME, (long)ret, 0, 0, 0) == 0;
}

static int64_t between_ns(const struct timespec *from, const struct timespec *to)
{
	return (int64_t)(to->tv_sec - from->tv_sec) * (int64_t)CLOCK_SECOND_NS + to->tv_nsec -
			from->tv_nsec;
}

/* Once asked for, the kernel stamps what comes; of the rest it says that it came just now. */
uint64_t socket_datagram_age_ns(int fd)
{
	struct timespec before, came, now;
	int64_t age_ns;

	if (!real_time(&before) || ask(SYS_ioctl, fd, SIOCGSTAMPNS_OLD, (long)&came, 0, 0) ||
			!real_time(&now))
		return 0;
	age_ns = between_ns(&came, &now);
	if (age_ns >= 0 && between_ns(&before, &came) >= 0)
		return SOCKET_UNSTAMPED;
	/* Its clock may have been set meanwhile. */
	return age_ns > 0 && age_ns < (int64_t)AGE_MOST_NS ? (uint64_t)age_ns : 0;
}

uint32_t socket_queued(int fd)
{
	int count = 0;

	return ask(SYS_ioctl, fd, FIONREAD, (long)&count, 0, 0) == 0 ? (uint32_t)count : 0;
}

uint64_t socket_timeout_ns(int fd, int option)
{
	struct timeval time = { 0 };

	if (!option_read(fd, SOL_SOCKET, option, &time, sizeof(time)) || time.tv_sec < 0)
		return 0;
	return (uint64_t)time.tv_sec * CLOCK_SECOND_NS + (uint64_t)time.tv_usec * 1000;
}

int socket_error(int fd)
{
	int error = 0;

	return option_read(fd, SOL_SOCKET, SO_ERROR, &error, sizeof(error)) ? error : 0;
}

static long receive_nothing(int fd, int flags, struct sockaddr_storage *ret, socklen_t *length)
{
	long result;

	if (!own_calls_begin())
		return -EAGAIN;
	result = raw_syscall(SYS_recvfrom, fd, 0, 0, flags | MSG_DONTWAIT, (long)ret, (long)length);
	own_calls_end();
	return result;
}

long socket_next_sender(int fd, struct sockaddr_storage *ret)
{
	socklen_t length = sizeof(*ret);
	long result = receive_nothing(fd, MSG_PEEK, ret, &length);

	return result < 0 ? result : (long)length;
}

void socket_drop_next(int fd)
{
	receive_nothing(fd, 0, NULL, NULL);
}

socklen_t socket_peer(int fd, struct sockaddr_storage *ret)
{
	socklen_t length = sizeof(*ret);

	return ask(SYS_getpeername, fd, (long)ret, (long)&length, 0, 0) == 0 ? length : 0;
}

bool socket_silence(int fd)
{
	struct sock_filter nothing = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog program = { .len = 1, .filter = &nothing };

	return option_write(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

void socket_listen_again(int fd)
{
	int unused = 0;

	option_write(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

void socket_wake(int fd)
{
	ask(SYS_shutdown, fd, SHUT_RD, 0, 0, 0);
}
