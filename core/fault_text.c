/* SPDX-License-Identifier: MIT */
#include "core/fault_text.h"

#include <string.h>

#include "core/complaint.h"
#include "core/fault_reader.h"
#include "core/fault_terms.h"
#include "core/fault_writer.h"
#include "core/rule_word.h"
#include "core/text.h"

#define DATA (POSSIBLE_SEND | POSSIBLE_RECV)

static const char lookup_kinds[] = "nxdomain, servfail, again, nodata, addr=IP or latency=DUR";

static bool is_port(const char *text)
{
	uint16_t low, high;

	return text_ports(text, &low, &high) == NULL;
}

/* dns:NAME. A host that is called dns may have a port. */
static bool parse_lookup(const struct rule_word *word, size_t skipped, char copy[RULE_WORD_SIZE],
		struct fault *fault, const struct complaint *complaint)
{
	struct rule_word rest = {.text = word->text + skipped, .length = word->length - skipped};
	struct target *target = &fault->target;

	fault->is_lookup = true;
	if (rest.length > 0 &&
			!rule_word_target(&rest, copy, target, complaint->text, complaint->size))
		return false;
	if (rest.length == 0 || target->is_excluded || target->is_address ||
			target->port_high != UINT16_MAX || target->port_low != 0)
		return rule_word_say("a name, .suffix, glob or 'any' behind dns:", word,
				complaint->text, complaint->size);
	target->is_excluded = word->text[0] == '^';
	text_quote(target->text, sizeof(target->text), word->text, word->length);
	return true;
}

static bool is_term(char copy[RULE_WORD_SIZE], size_t length)
{
	char behind = copy[length];

	copy[length] = '\0';
	bool is_found = fault_term_find(copy) != NULL;
	copy[length] = behind;
	return is_found;
}

static bool parse_target(const struct rule_word *word, char copy[RULE_WORD_SIZE],
		struct fault *fault, const struct complaint *complaint)
{
	if (rule_word_copy(word, copy)) {
		size_t skipped = copy[0] == '^', length = strcspn(copy, "=");

		if (strncmp(copy + skipped, "dns:", 4) == 0 && !is_port(copy + skipped + 4))
			return parse_lookup(word, skipped + 4, copy, fault, complaint);
		if (length < word->length && is_term(copy, length)) {
			text_quote(fault->target.text, sizeof(fault->target.text), word->text,
					word->length);
			return complaint_first(fault, complaint);
		}
	}
	return rule_word_target(word, copy, &fault->target, complaint->text, complaint->size);
}

/* Is there room for it in the rule? */
static bool may_give(const struct fault *fault, const struct fault_term *term, const char *value,
		const struct complaint *complaint)
{
	if (fault_term_is_given(fault, term))
		return complaint_twice(term, value, complaint);
	if (fault_term_is_kind(term) && fault->kind != FAULT_KIND_COUNT)
		return complaint_say(complaint,
				"%s: expected one kind of fault, and %s is there already; write a "
				"second rule",
				term->name, fault_kind_name(fault->kind));
	return true;
}

static bool parse_value(struct fault *fault, const struct fault_term *term, const char *value,
		const struct complaint *complaint)
{
	const char *expected = NULL;

	if (!may_give(fault, term, value, complaint))
		return false;
	if (fault_term_is_kind(term))
		fault->kind = term->kind;
	if (!term->read && value)
		expected = "no value";
	else if (term->read && (value || !term->is_optional))
		expected = term->read(term, fault, value ? value : "");
	else if (term->kind == FAULT_SHORT || term->kind == FAULT_CORRUPT)
		fault->low = fault->high = 1;
	if (expected)
		return complaint_expected(term, expected, value, complaint);
	fault_term_give(fault, term);
	return true;
}

static bool parse_term(const struct rule_word *word, char copy[RULE_WORD_SIZE], struct fault *fault,
		const struct complaint *complaint)
{
	if (!rule_word_copy(word, copy))
		return rule_word_say("text without a NUL byte, at most 511 bytes of it", word,
				complaint->text, complaint->size);
	char *equals = strchr(copy, '=');
	if (!equals && strpbrk(copy, "0123456789%/") == copy)
		return parse_value(fault, fault_term_find("P%"), copy, complaint);
	if (equals)
		*equals = '\0';
	const struct fault_term *term = strchr(copy, '%') ? NULL : fault_term_find(copy);
	if (!term)
		return complaint_unknown(fault, copy, complaint);
	return parse_value(fault, term, equals ? equals + 1 : NULL, complaint);
}

static bool is_given(const struct fault *fault, const char *name)
{
	return fault_term_is_given(fault, fault_term_find(name));
}

/* Lookups have no direction, no calls, no protocol. */
static bool check_lookup(const struct fault *fault, const struct fault_term *kind,
		const struct complaint *complaint)
{
	static const char *const others[] = {"dir", "per", "proto"};

	if (!fault->is_lookup && kind->group == FAULT_TERM_LOOKUP)
		return complaint_say(complaint, "%s: expected a target such as dns:redis, got '%s'",
				kind->name, fault->target.text);
	if (!fault->is_lookup)
		return true;
	if (kind->group != FAULT_TERM_LOOKUP && kind->kind != FAULT_LATENCY)
		return complaint_say(complaint,
				"%s: expected a target without dns:, got '%s', which takes %s",
				kind->name, fault->target.text, lookup_kinds);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (is_given(fault, others[i]))
			return complaint_say(complaint,
					"%s: expected a target without dns:, got '%s'", others[i],
					fault->target.text);
	}
	return true;
}

static bool check_protocol(const struct fault *fault, const struct fault_term *kind,
		const struct complaint *complaint)
{
	if (fault->is_lookup)
		return true;
	if (fault->protocol == FAULT_UDP && !kind->is_for_udp)
		return complaint_say(complaint,
				"%s: expected proto=tcp, got 'proto=udp', which takes latency, "
				"errno, drop and dup",
				kind->name);
	if (fault->protocol == FAULT_TCP && !kind->is_for_tcp)
		return complaint_say(complaint, "%s: expected proto=udp beside it, got %s",
				kind->name, is_given(fault, "proto") ? "'proto=tcp'" : "none");
	return true;
}

static const char *direction_name(enum fault_direction direction)
{
	return direction == FAULT_BOTH ? "both" : direction == FAULT_IN ? "in" : "out";
}

static bool check_scope(const struct fault *fault, const struct fault_term *kind,
		const struct complaint *complaint)
{
	bool is_datagram = fault->protocol == FAULT_UDP;

	if (fault->is_lookup)
		return true;
	if (is_given(fault, "dir") && !kind->direction)
		return complaint_say(complaint, "dir: expected none with %s, got 'dir=%s'",
				kind->name, direction_name(fault->direction));
	if (!is_given(fault, "per"))
		return true;
	if (fault->per == FAULT_PER_CALL && kind->is_connection_only)
		return complaint_say(
				complaint, "per: expected conn with %s, got 'call'", kind->name);
	if (fault->per == FAULT_PER_CONNECTION && is_datagram && kind->kind == FAULT_LATENCY)
		return complaint_say(complaint, "per: expected call with proto=udp, got 'conn'");
	return true;
}

static unsigned int data_calls(enum fault_direction direction)
{
	return (direction & FAULT_OUT ? POSSIBLE_SEND : 0) |
	       (direction & FAULT_IN ? POSSIBLE_RECV : 0);
}

static unsigned int errno_calls(const struct fault *fault, unsigned int calls)
{
	bool is_datagram = fault->protocol == FAULT_UDP;

	return possible_calls(calls, is_datagram, true, fault->error) |
	       possible_calls(calls, is_datagram, false, fault->error);
}

/* Of connect, unless a direction or per=call says otherwise, or connect cannot come to it; of
 * datagrams never. */
static bool finish_errno(struct fault *fault, const struct complaint *complaint)
{
	bool is_of_data = fault->protocol == FAULT_UDP || is_given(fault, "dir") ||
			  (is_given(fault, "per") && fault->per == FAULT_PER_CALL);
	unsigned int asked = data_calls(fault->direction);

	if (!is_of_data) {
		fault->where = errno_calls(fault, POSSIBLE_CONNECT);
		if (fault->where)
			return true;
		asked |= POSSIBLE_CONNECT;
	}
	fault->where = errno_calls(fault, asked & DATA);
	if (!is_given(fault, "per"))
		fault->per = FAULT_PER_CALL;
	return fault->where || complaint_impossible(fault, asked, complaint);
}

/* What follows from several terms, and whether they go together. */
static bool finish(struct fault *fault, const struct complaint *complaint)
{
	const struct fault_term *kind = fault_term_at((size_t)fault->kind);

	if (fault->kind == FAULT_KIND_COUNT && fault_term_find(fault->target.text))
		return complaint_first(fault, complaint);
	if (fault->kind == FAULT_KIND_COUNT)
		return complaint_say(complaint, "expected a fault such as %s, got none",
				fault->is_lookup ? lookup_kinds : "refuse or latency=300ms");
	if (!check_lookup(fault, kind, complaint) || !check_protocol(fault, kind, complaint) ||
			!check_scope(fault, kind, complaint))
		return false;
	if (!is_given(fault, "dir"))
		fault->direction = kind->direction;
	if (!is_given(fault, "per"))
		fault->per = fault->is_lookup ? FAULT_PER_CONNECTION : kind->per;
	if (fault->kind == FAULT_ERRNO)
		return finish_errno(fault, complaint);
	fault->where = fault->is_lookup ? 0 : kind->where;
	if (kind->direction)
		fault->where &= data_calls(fault->direction);
	if (fault->kind == FAULT_HANG)
		fault->where = fault->per == FAULT_PER_CALL ? POSSIBLE_SEND : POSSIBLE_CONNECT;
	return true;
}

static uint64_t hash_word(uint64_t hash, const struct rule_word *word)
{
	return text_hash(text_hash(hash, word->text, word->length), "", 1);
}

bool fault_parse(const char *name, const char *text, size_t length, struct fault *ret, char *error,
		size_t size)
{
	const struct complaint complaint = {error, size};
	struct rule_words words = {text, text + length};
	struct rule_word word;
	char copy[RULE_WORD_SIZE];

	*ret = (struct fault){.kind = FAULT_KIND_COUNT, .ratio = RATIO_ONE};
	text_copy(ret->name, sizeof(ret->name), name);
	if (!rule_word_next(&words, &word))
		return complaint_say(
				&complaint, "expected a target such as redis:6379, got nothing");
	if (!parse_target(&word, copy, ret, &complaint))
		return false;
	uint64_t hash = hash_word(text_hash(0, name, strlen(name)), &word);
	while (rule_word_next(&words, &word)) {
		if (ret->target.is_excluded)
			return rule_word_say("nothing behind ^target", &word, error, size);
		if (!parse_term(&word, copy, ret, &complaint))
			return false;
		hash = hash_word(hash, &word);
	}
	ret->hash = hash;
	return ret->target.is_excluded || finish(ret, &complaint);
}

void fault_describe(const struct fault *fault, char *ret, size_t size)
{
	char value[FAULT_VALUE_SIZE];
	const struct fault_term *term;
	size_t used = text_copy(ret, size, fault->target.text);

	for (size_t i = 0; (term = fault_term_at(i)); i++) {
		if (!fault_term_is_given(fault, term))
			continue;
		value[0] = '\0';
		if (term->write)
			term->write(term, fault, value, sizeof(value));
		bool is_bare = !term->write || term->read == fault_reader_ratio;
		used += text_format(ret + used, size - used, " %s%s%s",
				term->write && is_bare ? "" : term->name, is_bare ? "" : "=",
				value);
	}
}
