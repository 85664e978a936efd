/* SPDX-License-Identifier: MIT */
#include "core/rule.h"

#include <string.h>

#include "core/setting_table.h"
#include "core/text.h"

#define WORD_SIZE 512

/* What is left of a rule's text. */
struct words {
	const char *at;
	const char *end;
};

struct word {
	const char *text;
	size_t length;
	bool behind_comma;
};

static bool is_separator(char c)
{
	return c == ' ' || c == ',' || c == '\t' || c == '\r' || c == '\n';
}

static bool next_word(struct words *words, struct word *ret)
{
	struct word word = { 0 };

	for (; words->at < words->end && is_separator(*words->at); words->at++)
		word.behind_comma |= *words->at == ',';
	word.text = words->at;
	while (words->at < words->end && !is_separator(*words->at))
		words->at++;
	word.length = (size_t)(words->at - word.text);
	*ret = word;
	return word.length > 0;
}

/* Terminated; false if it is too long or no text. */
static bool copy_word(const struct word *word, char ret[WORD_SIZE])
{
	if (word->length >= WORD_SIZE || memchr(word->text, '\0', word->length))
		return false;
	memcpy(ret, word->text, word->length);
	ret[word->length] = '\0';
	return true;
}

static bool say(const char *expected, const struct word *word, char *error, size_t size)
{
	char quoted[TEXT_QUOTE_SIZE];

	text_quote(quoted, sizeof(quoted), word->text, word->length);
	text_format(error, size, "expected %s, got '%s'", expected, quoted);
	return false;
}

static bool parse_target(const struct word *word, char copy[WORD_SIZE], struct target *ret,
		char *error, size_t size)
{
	const char *expected = "text without a NUL byte, at most 511 bytes of it";
	char suggested[TEXT_QUOTE_SIZE];

	if (copy_word(word, copy))
		expected = target_parse(copy, ret);
	if (!expected)
		return true;
	say(expected, word, error, size);
	if (copy_word(word, copy) && target_suggest(copy, suggested, sizeof(suggested))) {
		size_t used = strlen(error);

		text_format(error + used, size - used, ", did you mean %s?", suggested);
	}
	return false;
}

/* `list`: the list that the word before belongs to, or NULL; updated. */
static bool parse_setting(const struct word *word, char copy[WORD_SIZE],
		const struct setting **list, struct settings *settings, char *error, size_t size)
{
	if (!copy_word(word, copy))
		return say("setting=value", word, error, size);
	char *equals = strchr(copy, '=');
	if (!equals) {
		if (!*list || !word->behind_comma)
			return say("setting=value", word, error, size);
		return settings_apply(settings, (*list)->name, copy, error, size);
	}
	*equals = '\0';
	uint64_t given = settings->given;
	if (!settings_apply(settings, copy, equals + 1, error, size))
		return false;
	const struct setting *row = setting_find(copy);
	*list = row->is_list ? row : NULL;
	if (settings->given == given && !row->is_list) {
		text_format(error, size, "%s: given twice", row->name);
		return false;
	}
	return true;
}

static bool parse_settings(struct words *words, char copy[WORD_SIZE], struct rule *rule,
		char *error, size_t size)
{
	const struct setting *list = NULL;
	struct word word;

	while (next_word(words, &word)) {
		if (rule->target.is_excluded)
			return say("no settings behind ^target", &word, error, size);
		if (!parse_setting(&word, copy, &list, &rule->settings, error, size))
			return false;
	}
	return settings_finish(&rule->settings, error, size);
}

static uint64_t rule_hash(const struct rule *rule)
{
	const struct window_shape *window = &rule->settings.window;
	uint64_t hash = text_hash(0, rule->name, strlen(rule->name));

	hash = text_hash(hash, &window->span_ns, sizeof(window->span_ns));
	hash = text_hash(hash, &window->buckets, sizeof(window->buckets));
	return text_hash(hash, &window->calls, sizeof(window->calls));
}

bool rule_name_is_good(const char *name, size_t length)
{
	static const char good[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

	if (length < 1 || length >= RULE_NAME_SIZE)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!memchr(good, name[i], sizeof(good) - 1))
			return false;
	}
	return true;
}

bool rule_parse(const char *name, const char *text, size_t length, struct rule *ret, char *error,
		size_t size)
{
	struct words words = { text, text + length };
	struct word word;
	char copy[WORD_SIZE];

	if (!next_word(&words, &word)) {
		text_format(error, size, "expected a target such as pay.internal:443, got nothing");
		return false;
	}
	if (!parse_target(&word, copy, &ret->target, error, size))
		return false;
	ret->settings = settings_default;
	ret->is_from_file = false;
	text_copy(ret->name, sizeof(ret->name), name);
	if (!parse_settings(&words, copy, ret, error, size))
		return false;
	ret->hash = rule_hash(ret);
	return true;
}

int rule_compare(const struct rule *a, const struct rule *b)
{
	if (a->target.is_excluded != b->target.is_excluded)
		return a->target.is_excluded ? -1 : 1;
	int order = target_compare(&a->target, &b->target);
	return order ? order : strcmp(a->name, b->name);
}

const struct rule *rule_find(const struct rule rules[], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	}
	return NULL;
}

/* In small pieces: a rule on the stack would be a large frame. */
static void swap(struct rule *a, struct rule *b)
{
	char *x = (char *)a, *y = (char *)b, spare[64];

	for (size_t done = 0; done < sizeof(*a); done += sizeof(spare)) {
		size_t left = sizeof(*a) - done;
		size_t size = left < sizeof(spare) ? left : sizeof(spare);

		memcpy(spare, x + done, size);
		memcpy(x + done, y + done, size);
		memcpy(y + done, spare, size);
	}
}

void rule_place(struct rule rules[], size_t last)
{
	for (; last > 0 && rule_compare(&rules[last], &rules[last - 1]) < 0; last--)
		swap(&rules[last], &rules[last - 1]);
}
