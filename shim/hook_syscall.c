/* SPDX-License-Identifier: MIT */
/*
 * Programs that go round libc's wrappers (libuv closes its sockets so). The calls that matter are
 * told like those of their own hooks; all go on as they came, and are no cancellation points.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "shim/gate.h"
#include "shim/gate_connect.h"
#include "shim/gate_lifetime.h"
#include "shim/hook_lifetime.h"
#include "shim/hook_process.h"
#include "shim/real.h"
#include "shim/runtime.h"

/* Not on newer machines. */
#ifndef SYS_dup2
#define SYS_dup2 (-1)
#endif
#ifndef SYS_fork
#define SYS_fork (-2)
#endif

struct call {
	long number;
	long arguments[6];
};

/* Does it matter? */
static bool is_told(long number)
{
	switch (number) {
	case SYS_connect:
	case SYS_socket:
	case SYS_accept:
	case SYS_accept4:
	case SYS_close:
	case SYS_close_range:
	case SYS_dup:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_fcntl:
	case SYS_fork:
	case SYS_clone:
	case SYS_clone3:
	case SYS_exit_group:
	case SYS_unshare:
	case SYS_setns:
	case SYS_prctl:
	case SYS_seccomp:
		return true;
	default:
		return false;
	}
}

static bool sets_filter(const struct call *call)
{
	if (call->number == SYS_seccomp)
		return call->arguments[0] == SECCOMP_SET_MODE_STRICT ||
				call->arguments[0] == SECCOMP_SET_MODE_FILTER;
	return call->number == SYS_prctl && call->arguments[0] == PR_SET_SECCOMP;
}

static bool wants_to_be_alone(const struct call *call)
{
	return call->number == SYS_unshare || call->number == SYS_setns || sets_filter(call);
}

/* It succeeded: did it make a process with memory of its own? */
static bool forks(const struct call *call)
{
	if (call->number == SYS_clone)
		return !(call->arguments[0] & CLONE_VM);
	if (call->number == SYS_clone3)
		return !(((const struct clone_args *)call->arguments[0])->flags & CLONE_VM);
	return call->number == SYS_fork;
}

/* False: refused, errno is set. */
static bool call_begins(const struct call *call, struct gate *gate)
{
	const long *a = call->arguments;

	switch (call->number) {
	case SYS_connect:
		return gate_connect(gate, (int)a[0], (const struct sockaddr *)a[1],
				(socklen_t)a[2]);
	case SYS_close:
		gate_close((int)a[0]);
		break;
	case SYS_close_range:
		close_range_begins((unsigned int)a[0], (unsigned int)a[1], (int)a[2]);
		break;
	case SYS_exit_group:
		process_ends();
		break;
	default:
		break;
	}
	return true;
}

static void call_succeeded(const struct call *call, int result)
{
	const long *a = call->arguments;

	switch (call->number) {
	case SYS_socket:
		gate_born(result, (int)a[0], (int)a[1]);
		break;
	case SYS_accept:
	case SYS_accept4:
		born_other(result);
		break;
	case SYS_dup:
		gate_copied((int)a[0], result, FD_OTHER);
		break;
	case SYS_fcntl:
		if (a[1] == F_DUPFD || a[1] == F_DUPFD_CLOEXEC)
			gate_copied((int)a[0], result, FD_OTHER);
		break;
	default:
		if (forks(call))
			process_has_forked(result);
	}
}

static long call_really(const struct call *call)
{
	const long *a = call->arguments;

	return real()->syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long call_copying(const struct call *call)
{
	int fd = (int)call->arguments[0], copy = (int)call->arguments[1];
	uint32_t taken = gate_copy_begins(fd, copy);

	return copy_ended(fd, copy, taken, (int)call_really(call));
}

/* The processor's counter goes with it. */
static bool sets_strict_mode(const struct call *call)
{
	if (call->number == SYS_seccomp)
		return call->arguments[0] == SECCOMP_SET_MODE_STRICT;
	return call->number == SYS_prctl && call->arguments[0] == PR_SET_SECCOMP &&
			call->arguments[1] == SECCOMP_MODE_STRICT;
}

static long call_alone(const struct call *call)
{
	bool is_strict = sets_strict_mode(call), is_filter = sets_filter(call);
	long result;

	process_alone_begins();
	if (is_strict)
		process_avoids_counter(true);
	if (is_filter)
		process_filter_begins();
	result = call_really(call);
	if (is_filter)
		process_filter_ended(result >= 0);
	else if (result >= 0)
		process_has_moved();
	if (result < 0 && is_strict)
		process_avoids_counter(false);
	process_alone_ends();
	return result;
}

__attribute__((noinline)) static long call_told(const struct call *call)
{
	struct gate gate;
	long result;

	if (call->number == SYS_dup2 || call->number == SYS_dup3)
		return call_copying(call);
	if (wants_to_be_alone(call))
		return call_alone(call);
	if (!call_begins(call, &gate))
		return -1;
	do
		result = call_really(call);
	while (call->number == SYS_connect && result && gate_connects_again(&gate));
	if (call->number == SYS_connect)
		return gate_connected(&gate, (int)result);
	if (result >= 0)
		call_succeeded(call, (int)result);
	return result;
}

/* Six are read whatever was given, as libc does: what was not given is not looked at. */
__attribute__((no_sanitize("address"))) HOOK(long, syscall, (long number, ...))
{
	struct call call = { .number = number };
	long *a = call.arguments;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (is_told(number))
		return call_told(&call);
	return real()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
