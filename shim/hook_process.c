/* SPDX-License-Identifier: MIT */
/* The end of the process, and what it does to itself that a thread of ours would hinder. */
#include "shim/hook_process.h"

#include <stdarg.h>

#include "shim/gate_lifetime.h"
#include "shim/inside.h"
#include "shim/log.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/timer.h"

void process_ends(void)
{
	if (!process_is_vfork_child())
		gate_exit();
}

void process_becomes_single(void)
{
	if (!process_is_vfork_child())
		timer_stop();
}

void process_is_filtered(void)
{
	if (process_is_vfork_child())
		return;
	atomic_store_explicit(&runtime.has_filter, true, memory_order_relaxed);
	log_stop();
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
	process_becomes_single();
	return real()->unshare(flags);
}

HOOK(int, setns, (int fd, int type))
{
	process_becomes_single();
	return real()->setns(fd, type);
}

HOOK(int, prctl, (int option, ...))
{
	va_list list;
	unsigned long a, b, c, d;
	int result;

	va_start(list, option);
	a = va_arg(list, unsigned long);
	b = va_arg(list, unsigned long);
	c = va_arg(list, unsigned long);
	d = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		process_becomes_single();
	result = real()->prctl(option, a, b, c, d);
	if (option == PR_SET_SECCOMP && result == 0)
		process_is_filtered();
	return result;
}
