/* SPDX-License-Identifier: MIT */
#include "shim/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "shim/own_call.h"
#include "shim/raw.h"

#define SIGNAL_COUNT 64

#define BIT(number) (1ull << ((number)-1))
/* It ends and changes threads by these two; no program handles them. */
#define SIGNALS_OF_LIBC (3ull << 31)
/* What a thread does to itself, and never while it waits: many a program reports its crashes. */
#define SIGNALS_OF_FAULTS                                                                          \
	(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGABRT) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) |    \
			BIT(SIGSYS))

/* As the kernel has it on both machines: libc's may be another preload's. */
struct action {
	uintptr_t handler;
	unsigned long flags;
	uintptr_t restorer;
	uint64_t mask;
};

static bool action_read(int number, struct action *ret)
{
	return raw_syscall(SYS_rt_sigaction, number, 0, (long)ret, sizeof(ret->mask), 0, 0) == 0;
}

static bool has_handler(const struct action *action)
{
	return action->handler != (uintptr_t)SIG_DFL && action->handler != (uintptr_t)SIG_IGN;
}

static uint64_t collect(uint64_t of, unsigned long flags_absent)
{
	struct action action = { 0 };
	uint64_t found = 0;

	for (int number = 1; number <= SIGNAL_COUNT; number++) {
		uint64_t bit = 1ull << (number - 1);

		if (of & bit && action_read(number, &action) && has_handler(&action) &&
				!(action.flags & flags_absent))
			found |= bit;
	}
	return found;
}

uint64_t signals_handled(uint64_t of)
{
	return collect(of, 0);
}

uint64_t signals_interrupting(uint64_t of)
{
	return collect(of, SA_RESTART);
}

bool signals_may_interrupt(void)
{
	bool may = true;

	if (own_calls_begin()) {
		may = signals_interrupting(~(SIGNALS_OF_LIBC | SIGNALS_OF_FAULTS)) != 0;
		own_calls_end();
	}
	return may;
}
