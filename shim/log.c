/* SPDX-License-Identifier: MIT */
#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "core/clock.h"
#include "core/text.h"
#include "shim/own_call.h"
#include "shim/raw.h"

#define SYSLOG_INFO_LOCAL0 "<134>"

static _Atomic int active_kind = LOG_OFF;
static const char *file_path;
static struct {
	dev_t device;
	ino_t inode;
} stderr_at_start;

static void close_raw(long fd)
{
	raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

static bool stat_raw(long fd, struct stat *ret)
{
	return raw_syscall(SYS_fstat, fd, (long)ret, 0, 0, 0, 0) == 0;
}

/* Days since 1970-01-01 to a date, by 400-year eras that begin on the first of March. */
static void date_from_days(uint64_t days, unsigned int *ret_year, unsigned int *ret_month,
		unsigned int *ret_day)
{
	uint64_t shifted = days + 719468;
	unsigned int era = (unsigned int)(shifted / 146097);
	unsigned int day_of_era = (unsigned int)(shifted % 146097);
	unsigned int year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
						   day_of_era / 146096) /
				   365;
	unsigned int day_of_year =
			day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	unsigned int month_from_march = (5 * day_of_year + 2) / 153;

	*ret_day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
	*ret_month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
	*ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

static char *put_digits(char *at, unsigned int value, int digits, char after)
{
	for (int i = digits - 1; i >= 0; i--) {
		at[i] = (char)('0' + value % 10);
		value /= 10;
	}
	at[digits] = after;
	return at + digits + 1;
}

char *log_format_time(uint64_t unix_seconds, char *ret)
{
	unsigned int year, month, day, second = (unsigned int)(unix_seconds % 86400);
	char *at = ret;

	date_from_days(unix_seconds / 86400, &year, &month, &day);
	at = put_digits(at, year, 4, '-');
	at = put_digits(at, month, 2, '-');
	at = put_digits(at, day, 2, 'T');
	at = put_digits(at, second / 3600, 2, ':');
	at = put_digits(at, second / 60 % 60, 2, ':');
	at = put_digits(at, second % 60, 2, 'Z');
	*at = '\0';
	return ret;
}

/* Room for a whole line, and somebody to read it? Else a write would wait, or raise SIGPIPE. */
static bool takes_line(long fd)
{
	struct pollfd wait = { .fd = (int)fd, .events = POLLOUT };
	struct timespec at_once = { 0 };

	return raw_syscall(SYS_ppoll, (long)&wait, 1, (long)&at_once, 0, 0, 0) == 1 &&
	       wait.revents == POLLOUT;
}

/* Past the limit the kernel would raise SIGXFSZ. */
static bool fits_file(const struct stat *file, size_t length)
{
	struct rlimit limit;

	if (raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0))
		return false;
	return limit.rlim_cur == RLIM_INFINITY ||
	       (uint64_t)file->st_size + length <= limit.rlim_cur;
}

static void write_stderr(const char *line, size_t length)
{
	struct stat now;

	if (!stat_raw(2, &now) || now.st_dev != stderr_at_start.device ||
			now.st_ino != stderr_at_start.inode)
		return;
	if (S_ISREG(now.st_mode) ? !fits_file(&now, length) : !takes_line(2))
		return;
	raw_syscall(SYS_write, 2, (long)line, (long)length, 0, 0, 0);
}

static void write_file(const char *line, size_t length)
{
	/* O_NONBLOCK: somebody else's FIFO must not hold the program up. */
	long flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	long fd = raw_syscall(SYS_openat, AT_FDCWD, (long)file_path, flags, 0600, 0, 0);
	struct stat file;

	if (fd < 0)
		return;
	if (stat_raw(fd, &file) &&
			(S_ISCHR(file.st_mode) ||
					(S_ISREG(file.st_mode) && fits_file(&file, length))))
		raw_syscall(SYS_write, fd, (long)line, (long)length, 0, 0, 0);
	close_raw(fd);
}

static void send_syslog(const char *line, size_t length)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	long fd = raw_syscall(
			SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);

	if (fd < 0)
		return;
	raw_syscall(SYS_sendto, fd, (long)line, (long)length, MSG_NOSIGNAL | MSG_DONTWAIT,
			(long)&address, sizeof(address));
	close_raw(fd);
}

/* What stands before the text. */
static size_t put_prefix(enum log_kind kind, char *line, size_t size)
{
	unsigned int pid = (unsigned int)raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	char time[24];

	if (kind == LOG_STDERR)
		return text_format(line, size, "shunt: ");
	if (kind == LOG_SYSLOG)
		return text_format(line, size, SYSLOG_INFO_LOCAL0 "shunt[%u]: ", pid);
	/* Not by localtime: no lock, no file, no system call. */
	return text_format(line, size, "%s shunt[%u]: ",
			log_format_time(clock_unix_seconds(), time), pid);
}

static void write_line(enum log_kind kind, char *line, size_t length)
{
	if (kind == LOG_SYSLOG) {
		send_syslog(line, length);
		return;
	}
	line[length++] = '\n';
	if (kind == LOG_STDERR)
		write_stderr(line, length);
	else
		write_file(line, length);
}

void log_line(const char *format, ...)
{
	enum log_kind kind =
			(enum log_kind)atomic_load_explicit(&active_kind, memory_order_acquire);
	char line[LOG_LINE_SIZE];
	int kept = errno;
	size_t length;
	va_list values;

	if (kind == LOG_OFF || !own_calls_begin())
		return;
	length = put_prefix(kind, line, sizeof(line) - 1);
	va_start(values, format);
	length += text_format_list(line + length, sizeof(line) - 1 - length, format, values);
	va_end(values);
	write_line(kind, line, length);
	own_calls_end();
	errno = kept;
}

void log_start(enum log_kind kind, const char *path)
{
	struct stat now;

	if (kind == LOG_STDERR) {
		if (!stat_raw(2, &now))
			return;
		stderr_at_start.device = now.st_dev;
		stderr_at_start.inode = now.st_ino;
	}
	file_path = path;
	atomic_store_explicit(&active_kind, kind, memory_order_release);
}

void log_stop(void)
{
	atomic_store_explicit(&active_kind, LOG_OFF, memory_order_release);
}

bool log_is_on(void)
{
	return atomic_load_explicit(&active_kind, memory_order_relaxed) != LOG_OFF &&
			!atomic_load_explicit(&own_calls.forbidden, memory_order_relaxed);
}
