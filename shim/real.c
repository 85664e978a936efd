/* SPDX-License-Identifier: MIT */
#include "shim/real.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "shim/raw.h"

#define NO_CALL (-1)
#define ANY_CALL (-2) /* the first argument says which */
#define ARGUMENTS 7

/* This thread is in dlsym() for the table: whatever is called from in there goes to the kernel. */
static _Thread_local bool is_resolving;

static _Atomic bool is_ready;

static long early_call(long number, const long a[ARGUMENTS])
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

/* struct real as the array that it is. */
typedef long (*any_function)(long, long, long, long, long, long, long) __attribute__((may_alias));

static const char *const symbol_names[] = {
#define NAME(name, number) #name,
	REAL_SYMBOLS(NAME)
#undef NAME
};

#define SYMBOL_COUNT (sizeof(symbol_names) / sizeof(symbol_names[0]))

/*
 * What an entry is until the table is filled, and stays where this libc has no such symbol. Of
 * whatever signature: called with fewer arguments than these, the rest is what registers and stack
 * happen to hold, and is handed on unseen.
 */
static long first_call(any_function self, const any_function *entry, long number,
		const long a[ARGUMENTS])
{
	any_function found;

	real_resolve();
	found = __atomic_load_n(entry, __ATOMIC_RELAXED);
	if (found == self)
		return early_call(number, a);
	return found(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
}

#define FIRST(name, number) \
	static long first_##name(long a, long b, long c, long d, long e, long f, long g) \
	{ \
		return first_call(first_##name, (any_function *)&real_table.name, number, \
				(const long[]){ a, b, c, d, e, f, g }); \
	}
REAL_SYMBOLS(FIRST)
#undef FIRST

struct real real_table = {
#define ENTRY(name, number) .name = (__typeof__(name) *)(void *)first_##name,
	REAL_SYMBOLS(ENTRY)
#undef ENTRY
};

static_assert(sizeof(real_table) == SYMBOL_COUNT * sizeof(any_function), "an entry is a pointer");

/* Threads that come here at the same time write the same values. Not inlined, and the result of
 * dlsym() is stored: it looks at its return address to know what comes next. */
__attribute__((noinline)) static void table_fill(any_function *table)
{
	for (size_t i = 0; i < SYMBOL_COUNT; i++) {
		any_function found = (any_function)dlsym(RTLD_NEXT, symbol_names[i]);

		if (found)
			__atomic_store_n(&table[i], found, __ATOMIC_RELAXED);
	}
}

void real_resolve(void)
{
	int error = errno;

	if (atomic_load_explicit(&is_ready, memory_order_acquire) || is_resolving)
		return;
	is_resolving = true;
	table_fill((any_function *)&real_table);
	is_resolving = false;
	atomic_store_explicit(&is_ready, true, memory_order_release);
	errno = error;
}

void *real_of_libc(const char *name)
{
	int error = errno;
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	void *found = libc ? dlsym(libc, name) : NULL;

	/* What went wrong here is not for the program to find. */
	if (!found)
		dlerror();
	errno = error;
	return found;
}

/* Before the first constructor of ours that might need it, and before threads and signal handlers
 * of the program. */
__attribute__((constructor(101))) static void real_start(void)
{
	real_resolve();
}
