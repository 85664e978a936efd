/* SPDX-License-Identifier: MIT */
#include "core/target.h"

#include <criterion/criterion.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char expect_host[] =
	"a host, .suffix, glob, address, prefix or 'any', with an optional :port";
static const char expect_port[] = "a port from 1 to 65535, or a range such as 8000-8999";
static const char expect_v6[] = "an IPv6 address, with a port as in [2001:db8::1]:443";
static const char expect_whole[] = "a whole address, or a prefix such as 10.1.0.0/16";
static const char expect_ascii[] = "a host in ASCII (an international name in punycode: xn--...)";

Test(target, every_form_is_read)
{
	static const struct {
		const char *text;
		enum target_kind kind;
		const char *host; /* or address */
		uint16_t low, high;
		uint8_t bits;
		bool is_address, is_excluded;
	} cases[] = {
			{"pay.internal", TARGET_EXACT, "pay.internal", 0, 65535, 0, false, false},
			{"Pay.Internal.:443", TARGET_EXACT, "pay.internal", 443, 443, 0, false,
					false},
			{"pay", TARGET_EXACT, "pay", 0, 65535, 0, false, false},
			{"pay:8000-8999", TARGET_EXACT, "pay", 8000, 8999, 0, false, false},
			{"^pay:1", TARGET_EXACT, "pay", 1, 1, 0, false, true},
			{"my_host-1.x", TARGET_EXACT, "my_host-1.x", 0, 65535, 0, false, false},
			{"xn--bcher-kva.example", TARGET_EXACT, "xn--bcher-kva.example", 0, 65535,
					0, false, false},
			{"1.2.3.4.example", TARGET_EXACT, "1.2.3.4.example", 0, 65535, 0, false,
					false},
			{".Example.com", TARGET_SUFFIX, ".example.com", 0, 65535, 0, false, false},
			{".com.:80", TARGET_SUFFIX, ".com", 80, 80, 0, false, false},
			{"web-?.example.*", TARGET_GLOB, "web-?.example.*", 0, 65535, 0, false,
					false},
			{"*", TARGET_GLOB, "*", 0, 65535, 0, false, false},
			{"1*", TARGET_GLOB, "1*", 0, 65535, 0, false, false},
			{"any", TARGET_ANY, "", 0, 65535, 0, false, false},
			{"ANY:443", TARGET_ANY, "", 443, 443, 0, false, false},
			{"^any", TARGET_ANY, "", 0, 65535, 0, false, true},
			{"10.1.2.3", TARGET_EXACT, "10.1.2.3", 0, 65535, 0, true, false},
			{"10.1.2.3:5432", TARGET_EXACT, "10.1.2.3", 5432, 5432, 0, true, false},
			{"0.0.0.0:80", TARGET_EXACT, "127.0.0.1", 80, 80, 0, true, false},
			{"::", TARGET_EXACT, "::1", 0, 65535, 0, true, false},
			{"2001:DB8::1", TARGET_EXACT, "2001:db8::1", 0, 65535, 0, true, false},
			{"[2001:db8::1]:443", TARGET_EXACT, "2001:db8::1", 443, 443, 0, true,
					false},
			{"[2001:db8::1]", TARGET_EXACT, "2001:db8::1", 0, 65535, 0, true, false},
			{"[::ffff:10.1.2.3]:80", TARGET_EXACT, "10.1.2.3", 80, 80, 0, true, false},
			{"10.1.2.3/32", TARGET_EXACT, "10.1.2.3", 0, 65535, 32, true, false},
			{"0.0.0.0/32", TARGET_EXACT, "127.0.0.1", 0, 65535, 32, true, false},
			{"2001:db8::1/128", TARGET_EXACT, "2001:db8::1", 0, 65535, 128, true,
					false},
			{"10.0.0.0/8", TARGET_RANGE, "10.0.0.0", 0, 65535, 8, true, false},
			{"10.0.0.0/8:5432", TARGET_RANGE, "10.0.0.0", 5432, 5432, 8, true, false},
			{"^10.0.0.0/8:1-9", TARGET_RANGE, "10.0.0.0", 1, 9, 8, true, true},
			{"0.0.0.0/0", TARGET_RANGE, "0.0.0.0", 0, 65535, 0, true, false},
			{"::/0", TARGET_RANGE, "::", 0, 65535, 0, true, false},
			{"2001:db8::/32", TARGET_RANGE, "2001:db8::", 0, 65535, 32, true, false},
			{"[2001:db8::]/32:443", TARGET_RANGE, "2001:db8::", 443, 443, 32, true,
					false},
			{"[2001:db8::/32]:443", TARGET_RANGE, "2001:db8::", 443, 443, 32, true,
					false},
			{"::ffff:10.0.0.0/104", TARGET_RANGE, "10.0.0.0", 0, 65535, 8, true, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *text = cases[i].text;
		struct target target;
		char address[46];
		const char *expected = target_parse(text, &target);

		cr_assert_null(expected, "%s: %s", text, expected);
		cr_expect_eq(target.kind, cases[i].kind, "%s", text);
		cr_expect_eq(target.is_address, cases[i].is_address, "%s", text);
		cr_expect_eq(target.is_excluded, cases[i].is_excluded, "%s", text);
		cr_expect_str_eq(target.is_address ? address_format(&target.address, address) :
						     target.host, cases[i].host, "%s", text);
		cr_expect(target.port_low == cases[i].low && target.port_high == cases[i].high,
				"%s", text);
		cr_expect_eq(target.prefix_bits, cases[i].bits, "%s", text);
		cr_expect_str_eq(target.text, text);
	}
}

Test(target, what_is_wrong_is_said)
{
	static const char *const cases[][2] = {
			{"", expect_host},
			{"^", expect_host},
			{".", expect_host},
			{"..", expect_host},
			{"a..b", expect_host},
			{"^^a", expect_host},
			{"pay internal", expect_host},
			{"a.b..", expect_host},
			{"..a", expect_host},
			{"pay!", expect_host},
			{"'pay'", expect_host},
			{"errors=50%", "a target such as pay.internal:443 before the settings"},
			{"100%", expect_host},
			{"\x01", expect_host},
			{".a*", expect_host},
			{":80", expect_host},
			{"pay:", expect_port},
			{"pay:0", expect_port},
			{"pay:65536", expect_port},
			{"pay:http", expect_port},
			{"pay:90-80", expect_port},
			{"pay:-1", expect_port},
			{"[::1]:", expect_port},
			{"10.0.0.0/8:x", expect_port},
			{"http://pay.internal", "a host without a scheme or path"},
			{"//pay", "a host without a scheme or path"},
			{"pay/path", "an address before the prefix length, such as 10.0.0.0/8"},
			{"any/8", "an address before the prefix length, such as 10.0.0.0/8"},
			{"[::1", "a closing ] behind the address"},
			{"[::1]x", "[address]:port"},
			{"[::1]80", "[address]:port"},
			{"[10.0.0.1]:80", "an IPv6 address in [ ]"},
			{"[pay]:80", expect_v6},
			{"[]", expect_v6},
			{"1:2:3", expect_v6},
			{"pay:80:90", expect_v6},
			{"2001:db8::1::", expect_v6},
			{"fe80::1%eth0", "an address without a zone"},
			{"[fe80::1%1]:80", "an address without a zone"},
			{"10.1.2", expect_whole},
			{"127.1", expect_whole},
			{"2130706433", expect_whole},
			{"10.1.2.256", expect_whole},
			{"10.1.*", expect_whole},
			{"10.1.2.?", expect_whole},
			{"010.1.2.3", expect_whole},
			{".1", expect_whole},
			{"pay.0", expect_whole},
			{"10.1.2.3/8", "a prefix without bits beyond its length"},
			{"2001:db8::1/32", "a prefix without bits beyond its length"},
			{"10.0.0.0/33", "a prefix length from 0 to 32"},
			{"10.0.0.0/", "a prefix length from 0 to 32"},
			{"10.0.0.0/-1", "a prefix length from 0 to 32"},
			{"10.0.0.0/8/8", "a prefix length from 0 to 32"},
			{"10.0.0.0/255.0.0.0", expect_host},
			{"::/129", "a prefix length from 0 to 128"},
			{"::ffff:0.0.0.0/95", "a prefix length from 96 to 128 for IPv4 in IPv6"},
			{"b\xc3\xbc"
			 "cher.example",
					expect_ascii},
			{"\xff", expect_ascii},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct target target = { .prefix_bits = 99 };
		const char *expected = target_parse(cases[i][0], &target);

		cr_assert_not_null(expected, "%s", cases[i][0]);
		cr_expect_str_eq(expected, cases[i][1], "%s: %s", cases[i][0], expected);
		cr_expect_eq(target.prefix_bits, 99, "untouched after %s", cases[i][0]);
	}
}

/* A host of four labels, `length` characters in all. */
static void make_long_host(char *ret, size_t length)
{
	memset(ret, 'a', length);
	ret[length] = '\0';
	for (size_t i = 63; i < length; i += 64)
		ret[i] = '.';
}

Test(target, a_name_has_the_length_that_dns_allows)
{
	char host[1024];
	struct target target;

	make_long_host(host, 253);
	cr_expect_null(target_parse(host, &target));
	make_long_host(host, 254);
	cr_expect_str_eq(target_parse(host, &target), "a host of at most 253 characters");
	make_long_host(host, 1023);
	cr_expect_str_eq(target_parse(host, &target), "a host of at most 253 characters");
	memset(host, 'a', 64);
	host[64] = '\0';
	cr_expect_str_eq(target_parse(host, &target), "labels of at most 63 characters in a host");
	host[63] = '\0';
	cr_expect_null(target_parse(host, &target));
}

Test(target, the_prefix_that_was_meant_is_suggested)
{
	static const char *const cases[][2] = {
			{"10.1.2.3/8", "10.0.0.0/8"},
			{"^10.1.2.3/31:80", "10.1.2.2/31"},
			{"192.168.255.1/17", "192.168.128.0/17"},
			{"1.2.3.4/0", "0.0.0.0/0"},
			{"[2001:db8::1/32]:443", "2001:db8::/32"},
			{"::ffff:10.1.2.3/104", "10.0.0.0/8"},
	};
	char suggested[64] = "untouched";

	cr_expect_not(target_suggest("pay", suggested, sizeof(suggested)));
	cr_expect_not(target_suggest("10.1.2.3", suggested, sizeof(suggested)));
	cr_expect_not(target_suggest("10.1.2.3/99", suggested, sizeof(suggested)));
	cr_expect_not(target_suggest("http://x/8", suggested, sizeof(suggested)));
	cr_expect_str_eq(suggested, "untouched");
	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect(target_suggest(cases[i][0], suggested, sizeof(suggested)));
		cr_expect_str_eq(suggested, cases[i][1]);
	}
}

static bool matches(
		const char *target_text, const char *host, const char *address_text, uint16_t port)
{
	struct target target;
	struct address address;
	struct endpoint endpoint = { .host = host, .port = port, .is_lookup = !address_text };
	const char *expected = target_parse(target_text, &target);

	cr_assert_null(expected, "%s: %s", target_text, expected);
	if (address_text) {
		cr_assert(address_parse(address_text, &address));
		endpoint.address = &address;
	}
	return target_matches(&target, &endpoint);
}

Test(target, a_name_matches_the_endpoint_that_was_asked_for_by_it)
{
	cr_expect(matches("pay.internal", "pay.internal", "10.0.0.1", 443));
	cr_expect(matches("PAY.internal.:443", "pay.internal", "::1", 443));
	cr_expect_not(matches("pay.internal:443", "pay.internal", "10.0.0.1", 80));
	cr_expect_not(matches("pay.internal", "pay.internal.example", "10.0.0.1", 80));
	cr_expect_not(matches("pay", "pay.internal", "10.0.0.1", 80));
	cr_expect_not(matches("pay.internal", NULL, "10.0.0.1", 443));
	cr_expect_not(matches("*", NULL, "10.0.0.1", 443));
}

Test(target, a_suffix_matches_below_itself_at_a_dot)
{
	cr_expect(matches(".example.com", "a.example.com", "10.0.0.1", 1));
	cr_expect(matches(".example.com", "a.b.example.com", "10.0.0.1", 1));
	cr_expect_not(matches(".example.com", "example.com", "10.0.0.1", 1));
	cr_expect_not(matches(".example.com", "badexample.com", "10.0.0.1", 1));
	cr_expect_not(matches(".example.com", "a.example.com.evil", "10.0.0.1", 1));
	cr_expect_not(matches(".example.com", "com", "10.0.0.1", 1));
	cr_expect_not(matches(".example.com", NULL, "10.0.0.1", 1));
}

Test(target, a_glob_matches_names)
{
	cr_expect(matches("web-?.example.*", "web-1.example.com", "10.0.0.1", 1));
	cr_expect_not(matches("web-?.example.*", "web-12.example.com", "10.0.0.1", 1));
	cr_expect(matches("*", "anything", "10.0.0.1", 1));
}

Test(target, an_address_matches_whatever_the_name)
{
	cr_expect(matches("10.0.0.1", "pay", "10.0.0.1", 1));
	cr_expect(matches("10.0.0.1", NULL, "::ffff:10.0.0.1", 1));
	cr_expect(matches("[::ffff:10.0.0.1]:1", NULL, "10.0.0.1", 1));
	cr_expect_not(matches("10.0.0.1", NULL, "10.0.0.2", 1));
	cr_expect(matches("10.0.0.0/8:5432", NULL, "10.255.0.1", 5432));
	cr_expect_not(matches("10.0.0.0/8:5432", NULL, "10.255.0.1", 5433));
	cr_expect_not(matches("10.0.0.0/8", NULL, "11.0.0.1", 1));
	cr_expect_not(matches("0.0.0.0/0", NULL, "::1", 1));
	cr_expect(matches("0.0.0.0/0", NULL, "127.0.0.1", 1));
	cr_expect(matches("::/0", NULL, "2001:db8::1", 1));
	cr_expect(matches("127.0.0.0/8", NULL, "0.0.0.0", 1));
	cr_expect(matches("0.0.0.0", NULL, "127.0.0.1", 1));
	cr_expect_not(matches("2001:db8::/33", NULL, "2001:db8:8000::1", 1));
}

Test(target, any_matches_everything_on_its_ports)
{
	cr_expect(matches("any", NULL, "10.0.0.1", 1));
	cr_expect(matches("any", "pay", "::1", 65535));
	cr_expect(matches("any:80-90", NULL, "10.0.0.1", 80));
	cr_expect(matches("any:80-90", NULL, "10.0.0.1", 90));
	cr_expect_not(matches("any:80-90", NULL, "10.0.0.1", 91));
	cr_expect_not(matches("any:80-90", NULL, "10.0.0.1", 79));
	cr_expect(matches("any", NULL, "10.0.0.1", 0));
}

Test(target, a_lookup_is_matched_by_its_name_whatever_the_port)
{
	cr_expect(matches("pay.internal:443", "pay.internal", NULL, 0));
	cr_expect(matches(".internal:443", "pay.internal", NULL, 0));
	cr_expect(matches("any:443", "pay.internal", NULL, 0));
	cr_expect_not(matches("10.0.0.0/8", "pay.internal", NULL, 0));
	cr_expect_not(matches("127.0.0.1", "localhost", NULL, 0));
}

Test(target, only_names_need_names)
{
	static const struct {
		const char *text;
		bool wants;
	} cases[] = {
			{"pay", true},
			{".pay", true},
			{"p*", true},
			{"^pay", true},
			{"any", false},
			{"10.0.0.1", false},
			{"10.0.0.0/8", false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct target target;

		cr_assert_null(target_parse(cases[i].text, &target));
		cr_expect_eq(target_wants_names(&target), cases[i].wants, "%s", cases[i].text);
	}
}

Test(target, the_more_specific_comes_first)
{
	static const char *const order[] = {"longer.example.com", "pay:443", "pay:1-9", "pay",
			"10.0.0.1:80", "10.0.0.1", ".example.com", ".com:80", ".com",
			"web-*.example", "*:80", "*", "10.1.0.0/16", "10.0.0.0/8:80", "10.0.0.0/8",
			"0.0.0.0/0", "any:80", "any"};
	struct target targets[COUNT(order)];

	for (size_t i = 0; i < COUNT(order); i++)
		cr_assert_null(target_parse(order[i], &targets[i]));
	for (size_t i = 0; i < COUNT(order); i++) {
		for (size_t j = 0; j < COUNT(order); j++) {
			int compared = target_compare(&targets[i], &targets[j]);

			cr_expect_eq((compared > 0) - (compared < 0), (i > j) - (i < j), "%s, %s",
					order[i], order[j]);
		}
	}
}

Test(target, a_host_is_normalised_if_it_fits)
{
	char host[HOST_SIZE] = "untouched", long_host[HOST_SIZE + 8];

	cr_expect(host_normalize("WWW.Example.COM.", host));
	cr_expect_str_eq(host, "www.example.com");
	cr_expect(host_normalize("", host));
	cr_expect_str_eq(host, "");
	memset(long_host, 'a', sizeof(long_host));
	long_host[HOST_SIZE] = '\0';
	cr_expect_not(host_normalize(long_host, host));
	cr_expect_str_eq(host, "");
	long_host[HOST_SIZE - 1] = '.';
	cr_expect(host_normalize(long_host, host));
	cr_expect_eq(strlen(host), HOST_SIZE - 1);
}
