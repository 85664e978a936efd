/* SPDX-License-Identifier: MIT */
#include "core/words.h"

#include <string.h>

/* The same bytes are a struct elsewhere. */
typedef uint64_t __attribute__((may_alias)) word;

void words_load(void *ret, const void *shared, size_t size)
{
	const word *from = shared;
	word *to = ret;

	for (size_t i = 0; i < size / sizeof(word); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
}

bool words_equal(const void *shared, const void *bytes, size_t size)
{
	const word *ours = bytes, *theirs = shared;
	word differences = 0;

	/* Keys that are compared are almost always equal: no branch per word. */
	for (size_t i = 0; i < size / sizeof(word); i++)
		differences |= __atomic_load_n(&theirs[i], __ATOMIC_ACQUIRE) ^ ours[i];
	return !differences;
}

bool words_store(void *shared, const void *bytes, size_t size, const _Atomic uint64_t *guard,
		uint64_t value)
{
	const word *from = bytes;
	word *to = shared;

	for (size_t i = 0; i < size / sizeof(word); i++) {
		uint64_t wanted = from ? from[i] : 0;

		if (__atomic_load_n(&to[i], __ATOMIC_RELAXED) == wanted)
			continue;
		if (atomic_load_explicit(guard, memory_order_relaxed) != value)
			return false;
		__atomic_store_n(&to[i], wanted, __ATOMIC_RELEASE);
	}
	return atomic_load_explicit(guard, memory_order_relaxed) == value;
}

static uint64_t mix(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0x9fb21c651e98df25u;
	return hash ^ hash >> 29;
}

static uint64_t lane_add(uint64_t lane, uint64_t value)
{
	lane = (lane ^ value) * 0xd6e8feb86659fd93u;
	return lane ^ lane >> 32;
}

/* Lanes of their own, so that the multiplications overlap: keys are hashed on every connect. */
uint64_t words_hash(const void *bytes, size_t size)
{
	const word *words = bytes;
	size_t left = size / sizeof(word);
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5;

	for (; left >= 5; left -= 5, words += 5) {
		a = lane_add(a, words[0]);
		b = lane_add(b, words[1]);
		c = lane_add(c, words[2]);
		d = lane_add(d, words[3]);
		e = lane_add(e, words[4]);
	}
	for (; left > 0; left--)
		a = lane_add(a, *words++);
	a = mix(mix(mix(mix(mix(size ^ a) + b) + c) + d) + e);
	return a ? a : 1;
}

void words_text(char *text, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size && text[i]; i++) {
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	}
	/* What follows the end is as foreign as what precedes it. */
	memset(text + i, 0, size - i);
}
