/* SPDX-License-Identifier: MIT */
/* The end of the process, and what it does to itself that a thread of ours would hinder. */
#include "shim/hook_process.h"

#include <linux/seccomp.h>
#include <stdarg.h>

#include "core/clock.h"
#include "shim/gate_lifetime.h"
#include "shim/inject.h"
#include "shim/inside.h"
#include "shim/log.h"
#include "shim/own_call.h"
#include "shim/real.h"
#include "shim/resolver.h"
#include "shim/runtime.h"
#include "shim/thread.h"
#include "shim/withheld.h"

void process_ends(void)
{
	if (process_is_vfork_child())
		return;
	inject_exit();
	gate_exit();
}

void process_alone_begins(void)
{
	if (process_is_vfork_child())
		return;
	holds_release();
	thread_hold();
}

void process_alone_ends(void)
{
	if (!process_is_vfork_child())
		thread_release();
}

void process_has_moved(void)
{
	if (!process_is_vfork_child())
		resolver_moved();
}

void process_filter_begins(void)
{
	if (process_is_vfork_child()) {
		inside_vfork = INSIDE_FILTERED_VFORK;
		return;
	}
	runtime_filter_begins();
	holds_release_before_filter();
}

void process_filter_ended(bool is_set)
{
	if (process_is_vfork_child())
		return;
	runtime_filter_ended(is_set);
	if (is_set)
		log_stop();
}

void process_avoids_counter(bool avoids)
{
	if (!process_is_vfork_child())
		clock_avoid_counter(avoids);
}

void process_has_forked(int pid)
{
	if (pid) {
		gate_fork_parent();
		return;
	}
	gate_fork_child();
	inject_forked();
	/* Who forked round libc has a number that libc does not know. */
	if (runtime_is_judging() && own_calls_begin()) {
		runtime.pid = (uint32_t)getpid();
		own_calls_end();
	}
}

HOOK(pid_t, _Fork, (void))
{
	pid_t pid = real()->_Fork();

	if (pid >= 0)
		process_has_forked(pid);
	return pid;
}

HOOK(void, _exit, (int status))
{
	process_ends();
	real()->_exit(status);
	__builtin_unreachable();
}

HOOK(void, _Exit, (int status))
{
	process_ends();
	real()->_Exit(status);
	__builtin_unreachable();
}

HOOK(void, quick_exit, (int status))
{
	process_ends();
	real()->quick_exit(status);
	__builtin_unreachable();
}

HOOK(int, unshare, (int flags))
{
	int result;

	process_alone_begins();
	result = real()->unshare(flags);
	if (result == 0)
		process_has_moved();
	process_alone_ends();
	return result;
}

HOOK(int, setns, (int fd, int type))
{
	int result;

	process_alone_begins();
	result = real()->setns(fd, type);
	if (result == 0)
		process_has_moved();
	process_alone_ends();
	return result;
}

static int set_filter(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	bool is_strict = a == SECCOMP_MODE_STRICT;
	int result;

	process_alone_begins();
	if (is_strict)
		process_avoids_counter(true);
	process_filter_begins();
	result = real()->prctl(PR_SET_SECCOMP, a, b, c, d);
	process_filter_ended(result == 0);
	if (result && is_strict)
		process_avoids_counter(false);
	process_alone_ends();
	return result;
}

static int set_counter(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	bool avoids = a == PR_TSC_SIGSEGV;
	int result;

	if (avoids)
		process_avoids_counter(true);
	result = real()->prctl(PR_SET_TSC, a, b, c, d);
	if ((result == 0) != avoids)
		process_avoids_counter(false);
	return result;
}

HOOK(int, prctl, (int option, ...))
{
	va_list list;
	unsigned long a, b, c, d;

	va_start(list, option);
	a = va_arg(list, unsigned long);
	b = va_arg(list, unsigned long);
	c = va_arg(list, unsigned long);
	d = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		return set_filter(a, b, c, d);
	if (option == PR_SET_TSC)
		return set_counter(a, b, c, d);
	return real()->prctl(option, a, b, c, d);
}
