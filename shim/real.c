/* SPDX-License-Identifier: MIT */
#include "shim/real.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "shim/raw.h"

struct real real_table;
_Atomic bool real_is_ready;

/* This thread is in dlsym() for the table: whatever is called from in there goes to the kernel. */
static _Thread_local bool is_resolving;

#define NO_CALL (-1)
#define ANY_CALL (-2) /* the first argument says which */

static long early_call(long number, const long a[7])
{
	long result;

	if (number == NO_CALL)
		result = -ENOSYS;
	else if (number == ANY_CALL)
		result = raw_syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	else
		result = raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result >= 0 || result < -4095)
		return result;
	errno = (int)-result;
	return -1;
}

/* Called with fewer arguments than these, the rest is whatever the registers hold: the kernel does
 * not look at it. */
#define EARLY(name, number) \
	static long early_##name(long a, long b, long c, long d, long e, long f, long g) \
	{ \
		return early_call(number, (const long[]){ a, b, c, d, e, f, g }); \
	}
REAL_SYMBOLS(EARLY)
#undef EARLY

/* struct real as the array that it is. */
typedef void (*any_function)(void) __attribute__((may_alias));

#define NAME(name, number) #name,
#define FUNCTION(name, number) (any_function)early_##name,
static const char *const symbol_names[] = { REAL_SYMBOLS(NAME) };
static const any_function early_functions[] = { REAL_SYMBOLS(FUNCTION) };
#undef NAME
#undef FUNCTION

#define SYMBOL_COUNT (sizeof(symbol_names) / sizeof(symbol_names[0]))

static_assert(sizeof(struct real) == sizeof(early_functions), "an entry is a pointer");

/* Threads that come here at the same time write the same values. Not inlined, and the result of
 * dlsym() is stored: it looks at its return address to know what comes next. */
__attribute__((noinline)) static void table_fill(any_function *table)
{
	for (size_t i = 0; i < SYMBOL_COUNT; i++) {
		any_function found = (any_function)dlsym(RTLD_NEXT, symbol_names[i]);

		if (!found)
			found = early_functions[i];
		__atomic_store_n(&table[i], found, __ATOMIC_RELAXED);
	}
}

struct real *real_resolve(void)
{
	int error = errno;

	if (is_resolving)
		return (struct real *)(uintptr_t)early_functions;
	is_resolving = true;
	table_fill((any_function *)&real_table);
	is_resolving = false;
	atomic_store_explicit(&real_is_ready, true, memory_order_release);
	errno = error;
	return &real_table;
}

/* Before the first constructor of ours that might need it, and before threads and signal handlers
 * of the program. */
__attribute__((constructor(101))) static void real_start(void)
{
	real();
}
