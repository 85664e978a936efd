/* SPDX-License-Identifier: MIT */
#include "shim/scratch.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shim/intact.h"
#include "shim/raw.h"

#define AREAS 64
#define PAGE  4096u

struct area {
	/* A thread above, its mark's token below, 0 there: it is just being taken; 0: free. */
	_Atomic uint64_t owner;
	_Atomic(const struct scratch *) mark;
	_Atomic(void *) memory;
	size_t size;
};

static struct area areas[AREAS];
static _Atomic uint32_t last_token;

static uint32_t token_next(void)
{
	uint32_t token;

	do
		token = atomic_fetch_add_explicit(&last_token, 1, memory_order_relaxed) + 1;
	while (!token);
	return token;
}

static bool is_gone(uint32_t thread)
{
	long process = raw_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);

	return raw_syscall(SYS_tgkill, process, thread, 0, 0, 0, 0) == -ESRCH;
}

/* By this thread: two that are in use have not the same place, and each has its token. */
static bool is_left(const struct area *area, uint32_t token, const struct scratch *scratch)
{
	const struct scratch *mark = atomic_load_explicit(&area->mark, memory_order_relaxed);

	return token && (mark == scratch || !is_intact(&mark->token, token));
}

static bool is_free(const struct area *area, uint64_t owner, uint32_t thread,
		const struct scratch *scratch, bool from_the_gone)
{
	uint32_t other = (uint32_t)(owner >> 32);

	if (!owner)
		return true;
	if (other == thread)
		return is_left(area, (uint32_t)owner, scratch);
	return from_the_gone && is_gone(other);
}

/* A signal handler that comes in between takes it for one that is being taken. */
static struct area *claim(uint32_t thread, struct scratch *scratch, bool from_the_gone)
{
	for (int i = 0; i < AREAS; i++) {
		struct area *area = &areas[i];
		uint64_t owner = atomic_load_explicit(&area->owner, memory_order_relaxed);

		if (!is_free(area, owner, thread, scratch, from_the_gone) ||
				!atomic_compare_exchange_strong_explicit(&area->owner, &owner,
						(uint64_t)thread << 32, memory_order_acquire,
						memory_order_relaxed))
			continue;
		atomic_store_explicit(&area->mark, scratch, memory_order_relaxed);
		atomic_store_explicit(&area->owner,
				(uint64_t)thread << 32 | atomic_load_explicit(&scratch->token,
						memory_order_relaxed), memory_order_relaxed);
		return area;
	}
	return NULL;
}

static void *sized(struct area *area, size_t size)
{
	void *memory = atomic_load_explicit(&area->memory, memory_order_relaxed);
	size_t before = area->size;

	if (before >= size)
		return memory;
	/* First: a handler may leave in between. */
	area->size = 0;
	atomic_signal_fence(memory_order_seq_cst);
	if (before)
		raw_syscall(SYS_munmap, (long)memory, (long)before, 0, 0, 0, 0);
	size = (size + PAGE - 1) / PAGE * PAGE;
	memory = (void *)raw_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((uintptr_t)memory > UINTPTR_MAX - PAGE)
		memory = NULL;
	atomic_store_explicit(&area->memory, memory, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	area->size = memory ? size : 0;
	return memory;
}

void *scratch_take(struct scratch *scratch, size_t size)
{
	uint32_t thread = (uint32_t)raw_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	struct area *area;

	scratch->memory = NULL;
	atomic_store_explicit(&scratch->token, token_next(), memory_order_relaxed);
	area = claim(thread, scratch, false);
	if (!area)
		area = claim(thread, scratch, true);
	if (!area)
		return NULL;
	scratch->memory = sized(area, size);
	if (!scratch->memory)
		atomic_store_explicit(&area->owner, 0, memory_order_release);
	return scratch->memory;
}

void scratch_give(struct scratch *scratch)
{
	for (int i = 0; i < AREAS; i++) {
		if (atomic_load_explicit(&areas[i].memory, memory_order_relaxed) ==
				scratch->memory) {
			atomic_store_explicit(&areas[i].owner, 0, memory_order_release);
			return;
		}
	}
}
