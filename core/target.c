/* SPDX-License-Identifier: MIT */
#include "core/target.h"

#include <string.h>

#include "core/text.h"

#define LABEL_MAX 63
#define NAME_MAX_LENGTH 253

static const char expect_host[] =
	"a host, .suffix, glob, address, prefix or 'any', with an optional :port";
static const char expect_prefix[] = "a prefix without bits beyond its length";

bool host_normalize(const char *host, char *ret)
{
	size_t length = 0;

	while (length <= HOST_SIZE && host[length])
		length++;
	if (length > 0 && host[length - 1] == '.')
		length--;
	if (length >= HOST_SIZE)
		return false;
	for (size_t i = 0; i < length; i++)
		ret[i] = host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] | 0x20) : host[i];
	ret[length] = '\0';
	return true;
}

/* What of a text is host, port and so on; the pieces are copies, terminated. */
struct pieces {
	char host[HOST_SIZE];
	char bits[8]; /* behind the slash, or "" */
	bool has_bits;
	bool in_brackets;
	const char *port; /* behind the colon, or NULL; points into the text */
};

static bool copy_span(char *ret, size_t size, const char *begin, const char *end)
{
	if ((size_t)(end - begin) >= size)
		return false;
	memcpy(ret, begin, (size_t)(end - begin));
	ret[end - begin] = '\0';
	return true;
}

/* [2001:db8::]:443, [2001:db8::/32]:443 and [2001:db8::]/32:443. */
static const char *split_brackets(const char *text, struct pieces *ret)
{
	const char *close = strchr(text, ']');

	if (!close)
		return "a closing ] behind the address";
	ret->in_brackets = true;
	const char *slash = memchr(text, '/', (size_t)(close - text));
	if (!copy_span(ret->host, HOST_SIZE, text + 1, slash ? slash : close))
		return expect_host;
	const char *rest = close + 1;
	const char *bits_end = close;
	if (!slash && *rest == '/') {
		slash = rest;
		rest += strcspn(rest, ":");
		bits_end = rest;
	}
	ret->has_bits = slash != NULL;
	if (slash && !copy_span(ret->bits, sizeof(ret->bits), slash + 1, bits_end))
		return expect_host;
	if (*rest != '\0' && *rest != ':')
		return "[address]:port";
	ret->port = *rest ? rest + 1 : NULL;
	return NULL;
}

static const char *split_plain(const char *text, struct pieces *ret)
{
	const char *colon = strchr(text, ':');
	const char *end = text + strlen(text);

	/* Two colons: an IPv6 address without brackets, which leaves no room for a port. */
	if (colon && strchr(colon + 1, ':'))
		colon = NULL;
	if (colon) {
		ret->port = colon + 1;
		end = colon;
	}
	const char *slash = memchr(text, '/', (size_t)(end - text));
	ret->has_bits = slash != NULL;
	if (slash && !copy_span(ret->bits, sizeof(ret->bits), slash + 1, end))
		return expect_host;
	if (!copy_span(ret->host, HOST_SIZE, text, slash ? slash : end))
		return "a host of at most 253 characters";
	return NULL;
}

static const char *split(const char *text, struct pieces *ret)
{
	if (strchr(text, '='))
		return "a target such as pay.internal:443 before the settings";
	if (strstr(text, "//"))
		return "a host without a scheme or path";
	return text[0] == '[' ? split_brackets(text, ret) : split_plain(text, ret);
}

/* NULL also where host bits are set: the caller compares. */
static const char *read_prefix(const struct pieces *pieces, struct address *ret, uint8_t *ret_bits)
{
	struct address address;
	bool is_mapped;
	uint64_t bits;

	if (!address_parse_prefix(pieces->host, &address, &is_mapped))
		return "an address before the prefix length, such as 10.0.0.0/8";
	if (text_count(pieces->bits, &bits) ||
			bits > (address.family == 4 && !is_mapped ? 32 : 128))
		return address.family == 4 ? "a prefix length from 0 to 32" :
					     "a prefix length from 0 to 128";
	if (is_mapped) {
		if (bits < 96)
			return "a prefix length from 96 to 128 for IPv4 in IPv6";
		bits -= 96;
	}
	*ret = address;
	*ret_bits = (uint8_t)bits;
	return NULL;
}

static const char *parse_prefix(const struct pieces *pieces, struct target *ret)
{
	const char *expected = read_prefix(pieces, &ret->address, &ret->prefix_bits);

	if (expected)
		return expected;
	struct address cleared = ret->address;
	address_clear_host_bits(&cleared, ret->prefix_bits);
	if (memcmp(&cleared, &ret->address, sizeof(cleared)) != 0)
		return expect_prefix;
	ret->is_address = true;
	ret->kind = TARGET_RANGE;
	if (ret->prefix_bits == (ret->address.family == 4 ? 32 : 128)) {
		ret->kind = TARGET_EXACT;
		ret->address = address_loopback(ret->address);
	}
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* 10.1.2 or 10.1.*: meant as an address, and no name of a host ends so. */
static bool looks_numeric(const char *host)
{
	const char *last = strrchr(host, '.');
	const char *label = last ? last + 1 : host;

	if (strchr(host, '*') || strchr(host, '?'))
		return is_digit(host[0]) && last && host[strspn(host, "0123456789.*?")] == '\0';
	return *label && label[strspn(label, "0123456789")] == '\0';
}

/* NULL for labels of name characters and those of `wild`. */
static const char *check_name(const char *name, const char *wild)
{
	size_t label = 0;

	if (strlen(name) > NAME_MAX_LENGTH)
		return "a host of at most 253 characters";
	for (; *name; name++) {
		if (*name & 0x80)
			return "a host in ASCII (an international name in punycode: xn--...)";
		if (*name == '.' ? label == 0 : !is_name_character(*name) && !strchr(wild, *name))
			return expect_host;
		label = *name == '.' ? 0 : label + 1;
		if (label > LABEL_MAX)
			return "labels of at most 63 characters in a host";
	}
	return label == 0 ? expect_host : NULL;
}

static const char *parse_name(struct target *ret)
{
	const char *host = ret->host;

	if (looks_numeric(host))
		return "a whole address, or a prefix such as 10.1.0.0/16";
	if (host[0] == '.') {
		ret->kind = TARGET_SUFFIX;
		return check_name(host + 1, "");
	}
	bool is_glob = strchr(host, '*') || strchr(host, '?');
	ret->kind = is_glob ? TARGET_GLOB : TARGET_EXACT;
	return check_name(host, is_glob ? "*?" : "");
}

static const char *parse_host(const struct pieces *pieces, struct target *ret)
{
	if (pieces->has_bits)
		return parse_prefix(pieces, ret);
	if (strchr(pieces->host, '%') && strchr(pieces->host, ':'))
		return "an address without a zone";
	if (address_parse(pieces->host, &ret->address)) {
		if (pieces->in_brackets && !strchr(pieces->host, ':'))
			return "an IPv6 address in [ ]";
		ret->kind = TARGET_EXACT;
		ret->is_address = true;
		address_format(&ret->address, ret->host);
		return NULL;
	}
	if (pieces->in_brackets || strchr(pieces->host, ':'))
		return "an IPv6 address, with a port as in [2001:db8::1]:443";
	host_normalize(pieces->host, ret->host);
	if (strcmp(ret->host, "any") == 0) {
		ret->kind = TARGET_ANY;
		ret->host[0] = '\0';
		return NULL;
	}
	return parse_name(ret);
}

const char *target_read(const char *text, struct target *ret)
{
	struct pieces pieces = { .port = NULL };
	const char *expected;

	*ret = (struct target){ .port_high = UINT16_MAX };
	text_quote(ret->text, sizeof(ret->text), text, strnlen(text, HOST_SIZE));
	ret->is_excluded = text[0] == '^';
	expected = split(text + ret->is_excluded, &pieces);
	if (expected)
		return expected;
	if (pieces.port) {
		expected = text_ports(pieces.port, &ret->port_low, &ret->port_high);
		if (expected)
			return expected;
	}
	expected = parse_host(&pieces, ret);
	if (expected)
		return expected;
	ret->host_length = (uint16_t)strlen(ret->host);
	return NULL;
}

const char *target_parse(const char *text, struct target *ret)
{
	struct target target;
	const char *expected = target_read(text, &target);

	if (!expected)
		*ret = target;
	return expected;
}

bool target_suggest(const char *text, char *ret, size_t size)
{
	struct pieces pieces = { .port = NULL };
	struct address address;
	char plain[46];
	uint8_t bits;

	if (split(text + (text[0] == '^'), &pieces) || !pieces.has_bits ||
			read_prefix(&pieces, &address, &bits))
		return false;
	address_clear_host_bits(&address, bits);
	text_format(ret, size, "%s/%u", address_format(&address, plain), bits);
	return true;
}

static bool has_suffix(const char *host, const struct target *target)
{
	size_t length = strlen(host), tail = target->host_length;

	return length > tail && memcmp(host + length - tail, target->host, tail) == 0;
}

/* Out of line: a connect is compared with addresses first of all. */
__attribute__((noinline)) static bool matches_name(const struct target *target, const char *host)
{
	if (target->kind == TARGET_EXACT)
		return host[0] == target->host[0] && strcmp(host, target->host) == 0;
	if (target->kind == TARGET_SUFFIX)
		return has_suffix(host, target);
	return text_glob(target->host, host);
}

bool target_matches(const struct target *target, const struct endpoint *endpoint)
{
	bool has_address = !endpoint->is_lookup && endpoint->address && endpoint->address->family;

	if (has_address &&
			(endpoint->port < target->port_low || endpoint->port > target->port_high))
		return false;
	if (target->kind == TARGET_ANY)
		return true;
	if (!target->is_address)
		return endpoint->host && matches_name(target, endpoint->host);
	if (!has_address)
		return false;
	if (target->kind == TARGET_RANGE)
		return address_shares_prefix(
				endpoint->address, &target->address, target->prefix_bits);
	return address_equals(endpoint->address, &target->address);
}

bool target_wants_names(const struct target *target)
{
	return target->kind != TARGET_ANY && !target->is_address;
}

static int compare_numbers(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

static size_t target_length(const struct target *target)
{
	return target->kind == TARGET_RANGE ? target->prefix_bits : target->host_length;
}

int target_compare(const struct target *a, const struct target *b)
{
	if (a->kind != b->kind)
		return compare_numbers(a->kind, b->kind);
	if (a->is_address != b->is_address)
		return a->is_address ? 1 : -1;
	int order = a->is_address && a->kind == TARGET_EXACT ?
			0 : compare_numbers(target_length(b), target_length(a));
	return order ? order
		     : compare_numbers(a->port_high - a->port_low, b->port_high - b->port_low);
}
