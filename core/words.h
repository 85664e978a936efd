/* SPDX-License-Identifier: MIT */
/*
 * Bytes in shared memory, read and written word by word while other processes write them. A copy
 * may mix two writers, never two halves of a word. `size` is a multiple of eight, memory is aligned
 * to eight. Async-signal-safe.
 */
#ifndef SHUNT_CORE_WORDS_H
#define SHUNT_CORE_WORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whatever is loaded after it was loaded later than every word. */
void words_load(void *ret, const void *shared, size_t size);

bool words_equal(const void *shared, const void *bytes, size_t size);

/*
 * Writes the words that differ (`bytes` NULL: zeroes), each only while *guard is `value`. False as
 * soon as it is not: somebody else has taken over. A process that is stopped in the middle for long
 * harms one word at most. Whatever was stored before shows before every word.
 */
bool words_store(void *shared, const void *bytes, size_t size, const _Atomic uint64_t *guard,
		uint64_t value);

/* Stable: it is part of the segment. Of private memory; never 0. About 10 bytes a
 * nanosecond. */
uint64_t words_hash(const void *bytes, size_t size);

/* Makes `text` of `size` bytes a string of printable ASCII; other bytes become '?'. */
void words_text(char *text, size_t size);

#endif
