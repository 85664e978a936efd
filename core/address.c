/* SPDX-License-Identifier: MIT */
#include "core/address.h"

#include <arpa/inet.h>
#include <endian.h>

#include "core/text.h"

static struct address address_make(const void *bytes, size_t size, uint8_t family)
{
	struct address address = { .family = family };

	memcpy(address.bytes, bytes, size);
	return address;
}

static bool is_mapped_v4(const uint8_t bytes[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(bytes, prefix, sizeof(prefix)) == 0;
}

/* As written: 0.0.0.0 stays what it is, for prefixes. */
static struct address address_plain_v6(const uint8_t bytes[16])
{
	if (is_mapped_v4(bytes))
		return address_make(bytes + 12, 4, 4);
	return address_make(bytes, 16, 6);
}

struct address address_loopback(struct address address)
{
	static const uint8_t zero[16];

	if (address.family == 0 || memcmp(address.bytes, zero, sizeof(zero)) != 0)
		return address;
	if (address.family == 4)
		memcpy(address.bytes, (uint8_t[]){ 127, 0, 0, 1 }, 4);
	else
		address.bytes[15] = 1;
	return address;
}

void address_read_v4(const void *four_bytes, struct address *ret)
{
	uint32_t words[4] = { 0 };

	memcpy(words, four_bytes, sizeof(words[0]));
	if (!words[0])
		words[0] = htonl(INADDR_LOOPBACK);
	*ret = (struct address){ .family = 4 };
	memcpy(ret->bytes, words, sizeof(words));
}

struct address address_from_v4(const void *four_bytes)
{
	struct address address;

	address_read_v4(four_bytes, &address);
	return address;
}

struct address address_from_v6(const void *sixteen_bytes)
{
	return address_loopback(address_plain_v6(sixteen_bytes));
}

bool address_parse_prefix(const char *text, struct address *ret, bool *ret_is_mapped)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1) {
		*ret = address_make(bytes, 4, 4);
		*ret_is_mapped = false;
		return true;
	}
	if (inet_pton(AF_INET6, text, bytes) != 1)
		return false;
	*ret = address_plain_v6(bytes);
	*ret_is_mapped = ret->family == 4;
	return true;
}

bool address_parse(const char *text, struct address *ret)
{
	char inner[64];
	size_t length = strnlen(text, sizeof(inner));
	struct address address;
	bool is_mapped;

	if (length < 2 || length == sizeof(inner))
		return false;
	bool in_brackets = text[0] == '[';
	if (in_brackets) {
		if (text[length - 1] != ']' || !memchr(text, ':', length))
			return false;
		text_copy(inner, length - 1, text + 1);
		text = inner;
	}
	if (!address_parse_prefix(text, &address, &is_mapped))
		return false;
	*ret = address_loopback(address);
	return true;
}

/* The longest run of at least two zero groups, for "::". */
static int zero_run(const uint16_t groups[8], int *ret_length)
{
	int best = -1, best_length = 1;

	for (int i = 0; i < 8; i++) {
		int length = 0;

		while (i + length < 8 && groups[i + length] == 0)
			length++;
		if (length > best_length) {
			best = i;
			best_length = length;
		}
	}
	*ret_length = best_length;
	return best;
}

static void format_v6(const uint8_t bytes[16], char text[46])
{
	uint16_t groups[8];
	int run_length;
	size_t used = 0;

	for (int i = 0; i < 8; i++)
		groups[i] = (uint16_t)(bytes[2 * i] << 8 | bytes[2 * i + 1]);
	int run = zero_run(groups, &run_length);
	for (int i = 0; i < 8; i++) {
		if (i == run) {
			used += text_copy(text + used, 46 - used, "::");
			i += run_length - 1;
			continue;
		}
		bool follows_group = i > 0 && i != run + run_length;
		if (run < 0)
			follows_group = i > 0;
		used += text_format(
				text + used, 46 - used, follows_group ? ":%x" : "%x", groups[i]);
	}
}

char *address_format(const struct address *address, char *text)
{
	const uint8_t *bytes = address->bytes;

	if (address->family == 4)
		text_format(text, 46, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
	else if (address->family == 6)
		format_v6(bytes, text);
	else
		text_copy(text, 46, "none");
	return text;
}

void address_clear_host_bits(struct address *address, unsigned int bits)
{
	for (unsigned int i = 0; i < sizeof(address->bytes); i++) {
		unsigned int kept = bits > 8 * i ? bits - 8 * i : 0;

		if (kept < 8)
			address->bytes[i] &= (uint8_t)(0xff00 >> kept);
	}
}

static uint64_t read_half(const uint8_t bytes[8])
{
	uint64_t half;

	memcpy(&half, bytes, sizeof(half));
	return be64toh(half);
}

static bool halves_share(const uint8_t a[8], const uint8_t b[8], unsigned int bits)
{
	uint64_t different = read_half(a) ^ read_half(b);

	return bits == 0 || different >> (bits < 64 ? 64 - bits : 0) == 0;
}

/* In two words: every connect of a program with a rule by range comes here. */
bool address_shares_prefix(const struct address *a, const struct address *b, unsigned int bits)
{
	return a->family == b->family && halves_share(a->bytes, b->bytes, bits) &&
			halves_share(a->bytes + 8, b->bytes + 8, bits > 64 ? bits - 64 : 0);
}
