/* SPDX-License-Identifier: MIT */
#include "shim/backtrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "shim/log.h"
#include "shim/real.h"

#define DESCRIPTORS_MAX 1024

static int (*unwind)(void **frames, int size);

/*
 * libunwind keeps a pipe to try addresses with, for as long as the process lives. Where the program
 * closes all descriptors and another file gets the number, it would read and write that one: before
 * each use they are compared with what they were.
 */
static struct {
	int fd;
	dev_t device;
	ino_t inode;
} pipe_ends[2];

static int pipe_end_count;

static _Atomic bool is_forked;

static void note_open(uint64_t ret_open[DESCRIPTORS_MAX / 64])
{
	for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
		if (real()->fcntl(fd, F_GETFD) >= 0)
			ret_open[fd / 64] |= UINT64_C(1) << fd % 64;
	}
}

static void note_pipe(const uint64_t open_before[DESCRIPTORS_MAX / 64])
{
	struct stat status;

	for (int fd = 0; fd < DESCRIPTORS_MAX && pipe_end_count < 2; fd++) {
		if (open_before[fd / 64] >> fd % 64 & 1 || fstat(fd, &status) ||
				!S_ISFIFO(status.st_mode))
			continue;
		pipe_ends[pipe_end_count].fd = fd;
		pipe_ends[pipe_end_count].device = status.st_dev;
		pipe_ends[pipe_end_count++].inode = status.st_ino;
	}
}

static bool has_its_pipe(void)
{
	struct stat status;

	for (int i = 0; i < pipe_end_count; i++) {
		if (fstat(pipe_ends[i].fd, &status) || status.st_dev != pipe_ends[i].device ||
				status.st_ino != pipe_ends[i].inode)
			return false;
	}
	return true;
}

void backtrace_start(void)
{
	void *frames[BACKTRACE_FRAMES];
	uint64_t open_before[DESCRIPTORS_MAX / 64] = { 0 };
	void *library;

	if (!log_is_on())
		return;
	note_open(open_before);
	library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&unwind = dlsym(library, "unw_backtrace");
	if (unwind) {
		unwind(frames, BACKTRACE_FRAMES);
		note_pipe(open_before);
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

static void log_frames(void **frames, int count)
{
	void *own = object_base((void *)(uintptr_t)backtrace_log);
	int first = 0;

	while (first < count && object_base(frames[first]) == own)
		first++;
	/* Linked into the program, everything is the same object: then all of it. */
	for (int i = first < count ? first : 0; i < count; i++)
		log_frame(frames[i]);
}

void backtrace_forked(void)
{
	atomic_store_explicit(&is_forked, true, memory_order_relaxed);
}

void backtrace_log(void)
{
	void *frames[BACKTRACE_FRAMES];
	int kept = errno;

	/* Nothing below is done for those who did not ask for it: it takes the loader's lock. */
	if (!unwind || !log_is_on())
		return;
	if (atomic_load_explicit(&is_forked, memory_order_relaxed))
		log_line("  no backtrace: in a forked child another thread's lock may be held");
	else if (has_its_pipe())
		log_frames(frames, unwind(frames, BACKTRACE_FRAMES));
	else
		log_line("  no backtrace: the program closed libunwind's descriptors");
	errno = kept;
}
