/* SPDX-License-Identifier: MIT */
#include "core/address.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(address, one_address_has_one_form_however_it_is_spelled)
{
	static const char *const spellings[][2] = {
			{"10.1.2.3", "10.1.2.3"},
			{"::ffff:10.1.2.3", "10.1.2.3"},
			{"[::ffff:a01:203]", "10.1.2.3"},
			{"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
			{"[::1]", "::1"},
			{"0.0.0.0", "127.0.0.1"},
			{"::", "::1"},
			{"::ffff:0.0.0.0", "127.0.0.1"},
			{"0:0:1:0:0:0:0:0", "0:0:1::"},
			{"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
			{"1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"},
			{"1::", "1::"},
			{"fe80::1:2", "fe80::1:2"},
			{"0:1:2:3:4:5:6:7", "0:1:2:3:4:5:6:7"},
			{"255.255.255.255", "255.255.255.255"},
			{"0:0:2::", "0:0:2::"},
			{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
					"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	};

	for (size_t i = 0; i < COUNT(spellings); i++) {
		struct address address;
		char text[46];

		cr_assert(address_parse(spellings[i][0], &address), "%s", spellings[i][0]);
		cr_expect_str_eq(address_format(&address, text), spellings[i][1]);
	}
}

Test(address, what_is_written_reads_back)
{
	for (unsigned int bits = 0; bits < 256; bits++) {
		uint8_t bytes[16] = { 0 };
		struct address back;
		char text[46];

		/* Every pattern of zero and other groups. */
		for (unsigned int i = 0; i < 8; i++)
			bytes[2 * i + 1] = bits >> i & 1 ? (uint8_t)(0x10 + i) : 0;
		struct address address = address_from_v6(bytes);
		cr_assert(address_parse(address_format(&address, text), &back), "%s", text);
		cr_expect(address_equals(&address, &back), "%s", text);
	}
}

Test(address, no_address_is_none)
{
	struct address none = { .family = 0 };
	char text[46];

	cr_expect_str_eq(address_format(&none, text), "none");
}

Test(address, other_text_is_refused)
{
	static const char *const bad[] = {"", "[", "[]", "]", ":", "10.1.2", "10.1.2.256",
			"010.1.2.3", "10.1.2.3.4", "127.1", "2130706433", "0x7f.1", "[10.1.2.3]",
			"[::1", "::1]", "::1::", "fe80::1%eth0", "g::1", "localhost", "10.1.2.3 ",
			" 10.1.2.3", "10.0.0.0/8", "[::1]x",
			"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct address address = { .family = 9 };

		cr_expect_not(address_parse(bad[i], &address), "%s", bad[i]);
		cr_expect_eq(address.family, 9, "untouched after %s", bad[i]);
	}
}

Test(address, from_the_network_is_the_same_as_from_text)
{
	struct in_addr v4;
	struct in6_addr v6, mapped, any = IN6ADDR_ANY_INIT;
	struct address parsed, made;
	uint32_t zero = 0;

	inet_pton(AF_INET, "10.1.2.3", &v4);
	inet_pton(AF_INET6, "2001:db8::1", &v6);
	inet_pton(AF_INET6, "::ffff:10.1.2.3", &mapped);

	address_parse("10.1.2.3", &parsed);
	made = address_from_v4(&v4);
	cr_expect_eq(memcmp(&made, &parsed, sizeof(made)), 0);
	memset(&made, 0xff, sizeof(made));
	address_read_v4(&v4, &made);
	cr_expect_eq(memcmp(&made, &parsed, sizeof(made)), 0);
	made = address_from_v6(&mapped);
	cr_expect_eq(memcmp(&made, &parsed, sizeof(made)), 0);
	address_parse("2001:db8::1", &parsed);
	made = address_from_v6(&v6);
	cr_expect_eq(memcmp(&made, &parsed, sizeof(made)), 0);
	address_parse("127.0.0.1", &parsed);
	made = address_from_v4(&zero);
	cr_expect(address_equals(&made, &parsed));
	address_parse("::1", &parsed);
	made = address_from_v6(&any);
	cr_expect(address_equals(&made, &parsed));
}

Test(address, prefixes_compare_bit_by_bit)
{
	static const struct {
		const char *a, *b;
		unsigned int shared; /* bits, from the left */
	} cases[] = {
			{"10.0.0.1", "10.0.0.0", 31},
			{"10.0.0.1", "10.128.0.0", 8},
			{"1.2.3.4", "1.2.3.4", 32},
			{"128.0.0.1", "1.0.0.1", 0},
			{"2001:db8::", "2001:db9::", 31},
			{"::2", "::3", 127},
			{"8000::", "1::", 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct address a, b;

		cr_assert(address_parse(cases[i].a, &a) && address_parse(cases[i].b, &b));
		for (unsigned int bits = 0; bits <= (a.family == 4 ? 32 : 128); bits++) {
			cr_expect_eq(address_shares_prefix(&a, &b, bits), bits <= cases[i].shared,
					"%s %s /%u", cases[i].a, cases[i].b, bits);
		}
	}
}

Test(address, families_never_share_a_prefix)
{
	struct address v4, v6;

	address_parse("10.0.0.0", &v4);
	address_parse("a00::", &v6);
	cr_expect_not(address_shares_prefix(&v4, &v6, 0));
	cr_expect_not(address_equals(&v4, &v6));
}

Test(address, host_bits_are_cleared_from_the_right)
{
	static const struct {
		unsigned int bits;
		const char *cleared;
	} cases[] = {
			{128, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
			{127, "2001:db8:ffff:ffff:ffff:ffff:ffff:fffe"},
			{48, "2001:db8:ffff::"},
			{35, "2001:db8:e000::"},
			{32, "2001:db8::"},
			{1, "::1" /* all clear: loopback */},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct address address, expected;

		address_parse("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", &address);
		address_parse(cases[i].cleared, &expected);
		address_clear_host_bits(&address, cases[i].bits);
		address = address_loopback(address);
		cr_expect(address_equals(&address, &expected), "/%u", cases[i].bits);
	}
}
