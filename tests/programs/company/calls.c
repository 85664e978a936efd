/* SPDX-License-Identifier: MIT */
/*
 * System calls by syscall() and by the instruction itself must come to the same, and so must
 * fcntl() and prctl() with every kind of argument, bare and with a library. Prints each, and ends
 * with 1 where two differ.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shim/raw.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct call {
	const char *name;
	long number;
	long arguments[6];
};

static bool differs;

static void compare(const char *name, long by_function, int error, long by_instruction)
{
	long expected = by_instruction < 0 && by_instruction > -4096 ? -1 : by_instruction;
	int expected_error = expected == by_instruction ? EDOM : (int)-by_instruction;
	bool is_same = by_function == expected && error == expected_error;

	printf("%s = %ld %s%s\n", name, by_function, error == EDOM ? "0" : strerrorname_np(error),
			is_same ? "" : " DIFFERS");
	if (!is_same)
		differs = true;
}

static void try(const struct call *call)
{
	const long *a = call->arguments;
	long by_instruction = raw_syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	long by_function;

	errno = EDOM;
	by_function = syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
	compare(call->name, by_function, errno, by_instruction);
}

/* Those of the same answer each time. */
static void play_plain(void)
{
	static uint32_t word = 5;
	static char text[64];
	static struct timespec at_once, past = { .tv_sec = 1 };
	static struct pollfd none = { .fd = -1 };
	static struct {
		const sigset_t *mask;
		size_t size;
	} masked = { NULL, 8 };
	const struct call calls[] = {
		{ "getpid", SYS_getpid, { 0 } },
		{ "gettid", SYS_gettid, { 0 } },
		{ "getppid", SYS_getppid, { 0 } },
		{ "getuid", SYS_getuid, { 0 } },
		{ "getpgid", SYS_getpgid, { 0 } },
		{ "getsid", SYS_getsid, { 0 } },
		{ "getpriority", SYS_getpriority, { 0, 0 } },
		{ "sched_getscheduler", SYS_sched_getscheduler, { 0 } },
		{ "sched_yield", SYS_sched_yield, { 0 } },
		{ "umask", SYS_umask, { 022 } },
		{ "kill 0", SYS_kill, { getpid(), 0 } },
		{ "tgkill 0", SYS_tgkill, { getpid(), getpid(), 0 } },
		{ "getcwd", SYS_getcwd, { (long)text, sizeof(text) } },
		{ "getcwd too small", SYS_getcwd, { (long)text, 1 } },
		{ "uname", SYS_uname, { 1 } },
		{ "clock_getres", SYS_clock_getres, { CLOCK_MONOTONIC, 0 } },
		{ "clock_gettime of none", SYS_clock_gettime, { 12345, (long)text } },
		{ "nanosleep", SYS_nanosleep, { (long)&at_once, 0 } },
		{ "ppoll", SYS_ppoll, { (long)&none, 1, (long)&at_once, 0, 8 } },
		{ "pselect6", SYS_pselect6, { 0, 0, 0, 0, (long)&at_once, (long)&masked } },
		{ "pselect6, bad mask", SYS_pselect6, { 0, 0, 0, 0, (long)&at_once, 1 } },
		{ "futex of another value", SYS_futex,
				{ (long)&word, FUTEX_WAIT_BITSET, 4, (long)&past, 0, -1 } },
		{ "futex in the past", SYS_futex,
				{ (long)&word, FUTEX_WAIT_BITSET, 5, (long)&past, 0, -1 } },
		{ "futex without a bit", SYS_futex,
				{ (long)&word, FUTEX_WAIT_BITSET, 5, (long)&past, 0, 0 } },
		{ "futex requeue", SYS_futex,
				{ (long)&word, FUTEX_CMP_REQUEUE, 0, 0, (long)text, 5 } },
		{ "futex requeue of another value", SYS_futex,
				{ (long)&word, FUTEX_CMP_REQUEUE, 0, 0, (long)text, 6 } },
		{ "mmap, odd offset", SYS_mmap, { 0, 4096, PROT_READ, MAP_PRIVATE, 0, 1 } },
		{ "read of none", SYS_read, { -1, (long)text, 1 } },
		{ "write of none", SYS_write, { 9999, (long)text, 1 } },
		{ "close of none", SYS_close, { -1 } },
		{ "close_range backwards", SYS_close_range, { 9, 8, 0 } },
		{ "dup of none", SYS_dup, { -1 } },
		{ "dup3 onto itself", SYS_dup3, { 1, 1, 0 } },
		{ "fcntl of none", SYS_fcntl, { -1, F_GETFL } },
		{ "connect of none", SYS_connect, { -1, 0, 0 } },
		{ "sendto of none", SYS_sendto, { -1, (long)text, 1, 0, 0, 0 } },
		{ "socket of none", SYS_socket, { -1, -1, -1 } },
		{ "prctl of none", SYS_prctl, { -1, 0, 0, 0, 0 } },
		{ "seccomp of none", SYS_seccomp, { -1, 0, 0 } },
		{ "unshare of none", SYS_unshare, { 0 } },
		{ "setns of none", SYS_setns, { -1, 0 } },
		{ "number -1", -1, { 1, 2, 3, 4, 5, 6 } },
		{ "number 1023", 1023, { 1, 2, 3, 4, 5, 6 } },
		{ "number 100000", 100000, { 1, 2, 3, 4, 5, 6 } },
		{ "number 2147483647", 2147483647, { 1, 2, 3, 4, 5, 6 } },
	};

	for (size_t i = 0; i < COUNT(calls); i++)
		try(&calls[i]);
}

/* The last of six arguments arrives, too. */
static void play_six(void)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	char text[8] = "";
	int ends[2];
	long page;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		return;
	compare("sendto of six", syscall(SYS_sendto, ends[0], "abc", 3, 0, NULL, 0), EDOM, 3);
	compare("recvfrom of six",
			syscall(SYS_recvfrom, ends[1], text, sizeof(text), 0, &from, &length), EDOM,
			3);
	printf("%s %d\n", text, (int)length);
	close(ends[0]);
	close(ends[1]);
	page = syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	compare("munmap of mmap", syscall(SYS_munmap, page, 4096), EDOM, 0);
}

/* What was not given lies in memory that nobody wrote. */
__attribute__((noinline)) static void play_few(void)
{
	char unwritten[256];

	__asm__ __volatile__("" : : "r"(unwritten) : "memory");
	compare("getuid of none", syscall(SYS_getuid), EDOM, (long)getuid());
	__asm__ __volatile__("" : : "r"(unwritten) : "memory");
	compare("umask of one", syscall(SYS_umask, 022), EDOM, 022);
	__asm__ __volatile__("" : : "r"(unwritten) : "memory");
}

#define SAY(call) said(#call, (errno = EDOM, (long)(call)))

static void said(const char *call, long result)
{
	printf("%s = %ld %s\n", call, result, errno == EDOM ? "0" : strerrorname_np(errno));
}

/* Integers, pointers, and nothing at all as the third argument. */
static void play_fcntl(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 10 };
	struct f_owner_ex owner = { .type = F_OWNER_PID };
	uint64_t hint = 0;
	int fd = memfd_create("locked", MFD_ALLOW_SEALING), pipes[2];

	SAY(fcntl(fd, F_OFD_SETLK, &lock));
	SAY(fcntl(fd, F_OFD_GETLK, &lock));
	printf("type %d length %ld\n", lock.l_type, (long)lock.l_len);
	SAY(fcntl64(fd, F_GETLK, &(struct flock){ .l_type = F_RDLCK, .l_len = 3 }));
	SAY(fcntl(fd, F_OFD_SETLK, (struct flock *)1));
	SAY(fcntl(fd, F_GETFL) & O_ACCMODE);
	SAY(fcntl(fd, F_SETFD, FD_CLOEXEC));
	SAY(fcntl(fd, F_GETFD));
	SAY(fcntl(fd, F_SETOWN_EX, &owner));
	SAY(fcntl(fd, F_GET_RW_HINT, &hint));
	SAY(fcntl64(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	SAY(fcntl(fd, F_GET_SEALS));
	SAY(fcntl(fd, -1, 7));
	SAY(fcntl(-1, F_DUPFD, 0));
	close(fd);
	if (pipe(pipes))
		return;
	SAY(fcntl(pipes[1], F_SETPIPE_SZ, 65536));
	SAY(fcntl(pipes[1], F_SETSIG, SIGRTMIN) + fcntl(pipes[1], F_GETSIG) - SIGRTMIN);
	close(pipes[0]);
	close(pipes[1]);
}

static void play_prctl(void)
{
	char name[16] = "", *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int signal_number = -1;

	SAY(prctl(PR_SET_NAME, "calls"));
	SAY(prctl(PR_GET_NAME, name));
	puts(name);
	SAY(prctl(PR_GET_DUMPABLE));
	SAY(prctl(PR_SET_PDEATHSIG, SIGUSR1));
	SAY(prctl(PR_GET_PDEATHSIG, &signal_number));
	printf("signal %d\n", signal_number == SIGUSR1);
	SAY(prctl(PR_GET_SECCOMP));
	SAY(prctl(PR_SET_SECCOMP, 77, NULL));
	SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 1));
	SAY(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, page, 4096, "calls") == 0 || errno == EINVAL);
}

int main(void)
{
	alarm(60);
	play_plain();
	play_six();
	play_few();
	play_fcntl();
	play_prctl();
	return differs;
}
