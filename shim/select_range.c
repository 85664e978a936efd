/* SPDX-License-Identifier: MIT */
#include "shim/select_range.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim/fd_table.h"
#include "shim/own_call.h"
#include "shim/raw.h"
#include "shim/reserve.h"

/* Empty sets, which end where nothing may be read: a kernel that looks further says so. */
static char *sets_end;
static uint32_t words_most;
/* It looks at so many at least: a table grows, and never shrinks. No process has a smaller one. */
static _Atomic uint32_t known_words = 1;

bool select_range_start(void)
{
	uint32_t words = fd_table.size / SELECT_WORD_BITS + 1;
	size_t page = getauxval(AT_PAGESZ);
	size_t size = (words * sizeof(uint64_t) + page - 1) / page * page;
	char *memory = reserve(size + page);

	if (!memory || mprotect(memory + size, page, PROT_NONE))
		return false;
	words_most = words;
	sets_end = memory + size;
	return true;
}

/* Does it look at that many words of a set? */
static bool reaches(uint32_t words)
{
	struct timespec at_once = { 0 };
	long set = (long)(sets_end - (words - 1) * sizeof(uint64_t));

	return raw_syscall(SYS_pselect6, words * SELECT_WORD_BITS, set, 0, 0, (long)&at_once, 0) ==
			-EFAULT;
}

/* The most that it reaches, `least` being one that it does. */
static uint32_t search(uint32_t least, uint32_t most)
{
	while (least < most) {
		uint32_t middle = least + (most - least + 1) / 2;

		if (reaches(middle))
			least = middle;
		else
			most = middle - 1;
	}
	return least;
}

bool select_range(uint32_t wanted, uint32_t *ret_words)
{
	uint32_t known = atomic_load_explicit(&known_words, memory_order_relaxed);

	*ret_words = wanted < known ? wanted : known;
	if (wanted <= known)
		return true;
	if (!sets_end || !own_calls_begin())
		return false;
	/* Mostly it has not grown. */
	if (reaches(known + 1)) {
		known = search(known + 1, wanted < words_most ? wanted : words_most);
		atomic_store_explicit(&known_words, known, memory_order_relaxed);
	}
	own_calls_end();
	*ret_words = known;
	return true;
}

void select_range_forked(void)
{
	atomic_store_explicit(&known_words, 1, memory_order_relaxed);
}
