/* SPDX-License-Identifier: MIT */
#include "shim/inject.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "core/clock.h"
#include "shim/adoption.h"
#include "shim/arrival.h"
#include "shim/below.h"
#include "shim/datagram_socket.h"
#include "shim/fault_report.h"
#include "shim/held_attempt.h"
#include "shim/hold.h"
#include "shim/inject_choose.h"
#include "shim/inject_connect.h"
#include "shim/inject_datagram.h"
#include "shim/inject_name.h"
#include "shim/inject_receive.h"
#include "shim/inject_send.h"
#include "shim/log.h"

_Atomic bool inject_is_on;

static struct hold_times hold_of(int fd, uint32_t events, uint64_t now_ns)
{
	struct connection *connection = fd_table_find(fd);

	if (connection && connection->kind == FD_DATAGRAM)
		return datagram_hold(fd, events, now_ns);
	return arrival_hold(fd, events, now_ns);
}

/* Programs that go round libc's connect(), or as libuv round what moves many datagrams. Six
 * arguments are read whatever was given, as libc does. */
__attribute__((no_sanitize("address"))) static long inject_syscall(long number, ...)
{
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_connect)
		return inject_connect((int)a[0], (const struct sockaddr *)a[1], (socklen_t)a[2]);
	if (number == SYS_sendmmsg && datagram_is_concerned((int)a[0], FAULT_OUT))
		return real()->sendmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2],
				(int)a[3]);
	if (number == SYS_recvmmsg && datagram_is_concerned((int)a[0], FAULT_IN))
		return real()->recvmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2],
				(int)a[3], (struct timespec *)a[4]);
	return below()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Once; another thread that comes here meanwhile goes on without. */
static void install(void)
{
	static _Atomic bool has_begun;

	if (atomic_exchange_explicit(&has_begun, true, memory_order_acq_rel))
		return;
	if (!slots_start()) {
		log_line("faults are off: no memory");
		return;
	}
	below_start();
	if (!hold_start(hold_of))
		log_line("faults: nothing is held for those who do not block: no memory");
	REPLACE(connect, inject_connect);
	REPLACE(syscall, inject_syscall);
	REPLACE(getsockopt, held_attempt_getsockopt);
	REPLACE(getpeername, held_attempt_getpeername);
	inject_receive_start();
	inject_send_start();
	inject_name_start();
	atomic_store_explicit(&inject_is_on, true, memory_order_release);
}

static void take_up(void)
{
	uint32_t count = fault_rules_count();

	if (count)
		install();
	for (uint32_t i = 0; i < count; i++) {
		if (slot_kind_holds(fault_rule_at(i)->fault.kind))
			holds_record();
	}
}

void inject_start(const char *program)
{
	fault_report_start(runtime.config.report_path, runtime.config.replay_path);
	if (!fault_rules_start(program, clock_now_ns())) {
		log_line("faults are off: no memory");
		return;
	}
	take_up();
}

/* Out of line: rules are read here, and gate_connect() is flat. */
__attribute__((noinline)) void inject_refresh(void)
{
	int error = errno;

	adoption_refresh(clock_now_ns());
	take_up();
	errno = error;
}

void inject_exit(void)
{
	if (atomic_load_explicit(&inject_is_on, memory_order_acquire))
		inject_choices_end();
}

void inject_forked(void)
{
	fault_rules_forked();
	if (atomic_load_explicit(&inject_is_on, memory_order_acquire))
		inject_choices_forked();
}
