/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "core/words.h"

static _Atomic uint64_t guard = 7;

Test(words, are_stored_while_the_guard_holds)
{
	uint64_t shared[3] = { 1, 2, 3 }, wanted[3] = { 1, 9, 8 };

	cr_assert(words_store(shared, wanted, sizeof(shared), &guard, 7));
	cr_assert(words_equal(shared, wanted, sizeof(shared)));
	cr_assert(words_store(shared, NULL, sizeof(shared), &guard, 7));
	cr_assert_eq(shared[0] | shared[1] | shared[2], 0);
}

Test(words, are_left_alone_once_somebody_else_has_taken_over)
{
	uint64_t shared[2] = { 1, 2 }, wanted[2] = { 3, 4 };

	cr_assert_not(words_store(shared, wanted, sizeof(shared), &guard, 6));
	cr_assert_eq(shared[0], 1);
	cr_assert_eq(shared[1], 2);
	cr_assert_not(words_store(shared, shared, sizeof(shared), &guard, 6),
		"equal words do not hide a lost guard");
}

Test(words, a_hash_tells_every_single_bit_apart)
{
	uint64_t words[45] = { 0 }, seen[45 * 64 + 1];
	size_t count = 0;

	seen[count++] = words_hash(words, sizeof(words));
	for (size_t i = 0; i < 45 * 64; i++) {
		words[i / 64] ^= 1ull << i % 64;
		seen[count++] = words_hash(words, sizeof(words)) & 0xffffffffffffull;
		words[i / 64] ^= 1ull << i % 64;
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++)
			cr_assert_neq(seen[i], seen[j], "bits %zu and %zu", i, j);
	}
}

Test(words, a_hash_minds_length_and_order)
{
	uint64_t words[12] = { 1, 2, 0, 0, 0, 3, 4 };
	uint64_t turned[12] = { 2, 1, 0, 0, 0, 4, 3 };
	uint64_t moved[12] = { 3, 2, 0, 0, 0, 1, 4 };

	cr_assert_neq(words_hash(words, 96), words_hash(words, 88));
	cr_assert_neq(words_hash(words, 96), words_hash(turned, 96));
	cr_assert_neq(words_hash(words, 96), words_hash(moved, 96));
	cr_assert_eq(words_hash(words, 96), 0xc609481447d801d0u,
		"it is part of the segment's layout");
}

Test(words, text_is_printable_and_ends)
{
	char text[8] = { 'a', '\n', '\x1b', (char)0xc3, 'b', '\0', 'x', 'y' };
	char endless[8] = "";

	words_text(text, sizeof(text));
	cr_assert_str_eq(text, "a???b");
	cr_assert_eq(text[6] | text[7], 0, "what follows the end is cleared");
	memset(endless, 'e', sizeof(endless));
	words_text(endless, sizeof(endless));
	cr_assert_str_eq(endless, "eeeeeee");
}
