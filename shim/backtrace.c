/* SPDX-License-Identifier: MIT */
#include "shim/backtrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/log.h"

static int (*unwind)(void **frames, int size);

void backtrace_start(void)
{
	void *frames[BACKTRACE_FRAMES];
	void *library;

	if (!log_is_on())
		return;
	library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&unwind = dlsym(library, "unw_backtrace");
	if (unwind) {
		unwind(frames, BACKTRACE_FRAMES);
		return;
	}
	/* What went wrong here is not for the program to find. */
	dlerror();
	log_line("no backtraces: libunwind.so.8 is missing (Debian: apt install libunwind8)");
}

static void *object_base(void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static void log_frame(void *address)
{
	Dl_info info;
	const char *file;

	if (!dladdr(address, &info) || !info.dli_fname) {
		log_line("  called by: 0x%lx", (unsigned long)(uintptr_t)address);
		return;
	}
	file = strrchr(info.dli_fname, '/');
	file = file ? file + 1 : info.dli_fname;
	if (info.dli_sname)
		log_line("  called by: %s+0x%lx (%s+0x%lx)", file,
				(unsigned long)((char *)address - (char *)info.dli_fbase),
				info.dli_sname,
				(unsigned long)((char *)address - (char *)info.dli_saddr));
	else
		log_line("  called by: %s+0x%lx", file,
				(unsigned long)((char *)address - (char *)info.dli_fbase));
}

void backtrace_log(void)
{
	void *frames[BACKTRACE_FRAMES], *own = object_base((void *)(uintptr_t)backtrace_log);
	int kept = errno, first = 0;
	int count = unwind && log_is_on() ? unwind(frames, BACKTRACE_FRAMES) : 0;

	while (first < count && object_base(frames[first]) == own)
		first++;
	/* Linked into the program, everything is the same object: then all of it. */
	for (int i = first < count ? first : 0; i < count; i++)
		log_frame(frames[i]);
	errno = kept;
}
