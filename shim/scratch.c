/* SPDX-License-Identifier: MIT */
#include "shim/scratch.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shim/raw.h"

#define AREAS 64
#define PAGE  4096u

struct area {
	_Atomic uint32_t owner; /* a thread; 0: free */
	_Atomic(void *) memory;
	size_t size;
};

static struct area areas[AREAS];

static bool is_gone(uint32_t thread)
{
	long process = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	return raw_syscall(SYS_tgkill, process, thread, 0, 0, 0, 0) == -ESRCH;
}

static struct area *claim(uint32_t thread, bool from_the_gone)
{
	for (int i = 0; i < AREAS; i++) {
		uint32_t owner = atomic_load_explicit(&areas[i].owner, memory_order_relaxed);

		if (owner && !(from_the_gone && is_gone(owner)))
			continue;
		if (atomic_compare_exchange_strong_explicit(&areas[i].owner, &owner, thread,
				memory_order_acquire, memory_order_relaxed))
			return &areas[i];
	}
	return NULL;
}

static void *sized(struct area *area, size_t size)
{
	void *memory = atomic_load_explicit(&area->memory, memory_order_relaxed);

	if (area->size >= size)
		return memory;
	if (area->size)
		raw_syscall(SYS_munmap, (long)memory, (long)area->size, 0, 0, 0, 0);
	area->size = 0;
	size = (size + PAGE - 1) / PAGE * PAGE;
	memory = (void *)raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((uintptr_t)memory > UINTPTR_MAX - PAGE)
		memory = NULL;
	atomic_store_explicit(&area->memory, memory, memory_order_relaxed);
	area->size = memory ? size : 0;
	return memory;
}

void *scratch_take(size_t size)
{
	uint32_t thread = (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	struct area *area = claim(thread, false);
	void *memory;

	if (!area)
		area = claim(thread, true);
	if (!area)
		return NULL;
	memory = sized(area, size);
	if (!memory)
		atomic_store_explicit(&area->owner, 0, memory_order_release);
	return memory;
}

void scratch_give(void *memory)
{
	for (int i = 0; i < AREAS; i++) {
		if (atomic_load_explicit(&areas[i].memory, memory_order_relaxed) == memory) {
			atomic_store_explicit(&areas[i].owner, 0, memory_order_release);
			return;
		}
	}
}
